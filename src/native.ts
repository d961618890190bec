import { provide } from '#native';
import * as engine from './connector/native/engine.ts';

/*
 * The entry point `h5log/native`: importing it loads h5wasm, so that blocking calls work on regular HDF5 from then on. It is the
 * only module that waits at its top level, because that is its whole purpose; from CommonJS use `await import('h5log/native')`.
 */
provide(engine);
await engine.loadLibrary();

/** h5wasm is loaded. */
export const ready = true;
