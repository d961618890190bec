import {
  type AttributeValues,
  type BuiltInExporter,
  DataProviderApi,
  type Dataset,
  type Entity,
  type ExportFormat,
  type ExportURL,
  type ProvidedEntity,
  type ValuesStoreParams,
} from '@h5web/app';
import type { ReaderClient } from './reader-client.ts';

/** What h5web reads a file through: one state of it, read by h5log in a worker. */
export class LogProvider extends DataProviderApi {
  readonly #client: ReaderClient;
  readonly #asOf: number | undefined;

  constructor(client: ReaderClient, name: string, asOf?: number) {
    super(name);
    this.#client = client;
    this.#asOf = asOf;
  }

  override getEntity(path: string): Promise<ProvidedEntity> {
    return this.#client.call('entity', [path, this.#asOf]);
  }

  override getValue(
    { dataset, selection }: ValuesStoreParams,
    signal?: AbortSignal,
    onProgress?: (part: number) => void,
  ): Promise<unknown> {
    const going = { ...(signal && { signal }), ...(onProgress && { onProgress }) };
    return this.#client.call('value', [dataset.path, selection, this.#asOf], going);
  }

  override getAttrValues({ path }: Entity): Promise<AttributeValues> {
    return this.#client.call('attributes', [path, this.#asOf]);
  }

  override getSearchablePaths(path: string): Promise<string[]> {
    return this.#client.call('paths', [path, this.#asOf]);
  }

  override getExportURL(
    format: ExportFormat,
    { path }: Dataset,
    selection?: string,
    builtInExporter?: BuiltInExporter,
  ): ExportURL | undefined {
    if (builtInExporter) return async () => new Blob([builtInExporter()]);
    if (format === 'tiff') return undefined;
    return () => this.#client.call('exported', [path, selection, format, this.#asOf]);
  }
}
