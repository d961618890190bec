/** Quicker ways for what is frequent, beside those that work for everything. */
export { placeRuns, visibleRuns } from './runs.ts';
export { SharedSelections } from './shared-selections.ts';
