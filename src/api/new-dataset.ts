// Making datasets: what they may be made with, and the objects that are made.

import { H5LogError } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import { anchorMaker } from '../connector/deferred.ts';
import type { FileSession } from '../connector/file-session.ts';
import { checkType } from '../dtype/check.ts';
import { type DType, fullType } from '../dtype/model.ts';
import { problemOfEncoding } from '../filter/pipeline.ts';
import type { ObjectNode } from '../hdf5/graph/object-node.ts';
import { createAnchor, createComposedAnchor, type NewAnchor } from '../log/format/new-anchor.ts';
import { checkFilters, createOrdinary, mustBeLoggable } from '../log/format/new-properties.ts';
import { encodeFillValue, fillValue, filterEntries } from '../log/format/properties.ts';
import type { Log } from '../log/log.ts';
import { checkMaxShape, checkShape } from '../space/shape.ts';
import type { AttributeValue } from './attribute-values.ts';
import { draftAttributes } from './attribute-values.ts';
import { CREATE, type DatasetOptions } from './dataset-options.ts';

/** Checks everything about a new dataset before anything is made. */
export function defineDataset<D extends DType>(
  path: string,
  options: DatasetOptions<D>,
  isLogged: boolean,
): {
  /** The new object; if its header is prepared, it has the attributes. */
  create(session: FileSession, parent: ObjectNode, name: string): ObjectNode;
} {
  if (typeof options !== 'object' || options === null)
    throw new H5LogError('OPTION', `${path}: { dtype, shape } are needed`, { object: path });
  checkNames('createDataset', options, CREATE);
  const dtype = checkType(options.dtype);
  if (isLogged) mustBeLoggable(path, dtype);
  const shape = checkShape(options.shape);
  const maxShape = checkMaxShape(options.maxShape, shape);
  const chunks = options.chunks === undefined ? null : checkChunks(path, options.chunks, shape);
  const filters = checkFilters(path, options.filters ?? []);
  // As it will be read: a number that fits the type, not the name of an enum's member.
  const fill = options.fill === undefined ? undefined : fillValue(dtype, encodeFillValue(dtype, options.fill), 0);
  const anchor = { dtype, shape, maxShape, chunks, filters, ...(fill === undefined ? {} : { fill }) };
  return {
    create(session, parent, name) {
      const { log } = session;
      const problem = problemOfEncoding(filterEntries(filters, fullType(dtype).size), session.codecs);
      if (problem) throw new H5LogError('UNSUPPORTED', `${path}: ${problem}`, { object: path });
      if (!log) return createOrdinary(session.structure, parent, name, anchor);
      const node = import.meta.page
        ? createAnchor(session.structure, parent, name, log.nextIdentity(parent), anchor)
        : newAnchor(session, log, parent, name, path, anchor, options.attributes ?? {});
      log.register(node, { ...anchor, fill }, parent);
      return node;
    },
  };
}

/** An anchor, with its attributes if its header is prepared. */
function newAnchor(
  { structure, comm, names, storage }: FileSession,
  log: Log,
  parent: ObjectNode,
  name: string,
  path: string,
  anchor: NewAnchor,
  given: Readonly<Record<string, AttributeValue>>,
): ObjectNode {
  const identity = log.nextIdentity(parent);
  const makeLater = anchorMaker(comm, anchor);
  if (makeLater) return makeLater(structure, parent, name, identity, anchor);
  // A dataset that others see gets a dataspace, and attributes of other names.
  const isSeen = log.publishState?.sequence != null;
  const attributes = isSeen ? null : draftAttributes(given, names, path, storage.name);
  const composed = attributes && createComposedAnchor(structure, parent, name, identity, anchor, attributes);
  return composed ?? createAnchor(structure, parent, name, identity, anchor);
}

function checkChunks(path: string, chunks: readonly number[], shape: readonly number[]): number[] {
  const sizes = checkShape(chunks);
  if (sizes.length !== shape.length)
    throw new H5LogError('SHAPE', `${path}: chunks of ${sizes.length} dimensions for a dataset of ${shape.length}`, {
      object: path,
    });
  if (sizes.some((size) => size === 0))
    throw new H5LogError('SHAPE', `${path}: a chunk cannot have a dimension of 0`, { object: path });
  return sizes;
}
