// Dimension scales (HDF5 Dimension Scale Specification): a scale is a dataset with CLASS and NAME, DIMENSION_LIST of another dataset
// refers to the scales of each dimension, and REFERENCE_LIST of a scale refers back.

import { T } from '../../dtype/construct.ts';
import { putU64 } from '../../hdf5/format/byte-writer.ts';
import { attributeParts } from '../../hdf5/graph/attribute-value.ts';
import { type AddressSlot, type HeaderMessage, type HeapSlot, ObjectNode } from '../../hdf5/graph/object-node.ts';
import { simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { encodeDatatype } from '../../hdf5/messages/encode.ts';
import { deleteAttribute, setEncodedAttribute } from '../../hdf5/write/attributes.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { storedScaleAttribute } from './names.ts';

/** The type of an element of REFERENCE_LIST, with the padding that libhdf5 gives it. */
const BACK_REFERENCE = T.compound(
  { dataset: T.reference, dimension: 'int32' },
  { offsets: { dataset: 0, dimension: 8 }, size: 16 },
);

/** Whether a file says that it is a netCDF file. */
export function isNetcdf({ attributes }: ObjectNode): boolean {
  return attributes.has('_NCProperties') || attributes.has('__NCProperties');
}

/** Whether nobody has asked for the messages of an object since it was made: then it has no attributes of scales. */
export function isPrepared({ prepared }: ObjectNode): boolean {
  return !import.meta.page && prepared !== null;
}

/** A dimension of a dataset that a scale is attached to. */
interface ScaleUse {
  readonly dataset: ObjectNode;
  readonly dimension: number;
}

/** The DIMENSION_LIST of all these datasets, with what it is called there. */
function* dimensionLists(structure: Structure, nodes: Iterable<ObjectNode>) {
  for (const dataset of nodes) {
    if (dataset.kind !== 'dataset' || isPrepared(dataset)) continue;
    const name = storedScaleAttribute('DIMENSION_LIST', dataset.attributes);
    const attribute = dataset.attributes.get(name);
    if (!attribute) continue;
    const { space, data, dataAt } = attributeParts(attribute, structure.loader.file.lengthSize);
    yield { dataset, name, space, data, dataAt, heap: attribute.message.heap };
  }
}

/** Which dimensions each scale is attached to, by the DIMENSION_LIST of all these datasets. References must be tracked. */
export function scaleUses(structure: Structure, nodes: Iterable<ObjectNode>): Map<ObjectNode, ScaleUse[]> {
  const uses = new Map<ObjectNode, ScaleUse[]>();
  for (const { dataset, dataAt, heap } of dimensionLists(structure, nodes)) {
    for (const { at, content } of heap) {
      for (const { target } of content.targets) {
        if (!(target instanceof ObjectNode) || target.linkCount === 0) continue;
        const known = uses.get(target);
        // An element has its length in 4 bytes, and then the heap ID.
        const use = { dataset, dimension: (at - 4 - dataAt) / 16 };
        if (known) known.push(use);
        else uses.set(target, [use]);
      }
    }
  }
  return uses;
}

/** Takes scales that are gone out of DIMENSION_LIST: libnetcdf opens no file in which one of its references is null. */
function forgetGone(structure: Structure, nodes: Iterable<ObjectNode>): void {
  for (const { dataset, name, space, data, dataAt, heap } of dimensionLists(structure, nodes)) {
    const before = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const bytes = new Uint8Array(data.length);
    const lengths = new DataView(bytes.buffer);
    const kept: HeapSlot[] = [];
    let isGone = false;
    for (const { at, content } of heap) {
      // Of the heap ID; the length of the element is in the 4 bytes before.
      const place = at - dataAt;
      const scales = content.targets.filter(({ target }) => target instanceof ObjectNode && target.linkCount > 0);
      if (scales.length < before.getUint32(place - 4, true)) isGone = true;
      if (scales.length === 0) continue;
      lengths.setUint32(place - 4, scales.length, true);
      const list = new Uint8Array(8 * scales.length);
      const targets = scales.map(({ target }, i) => ({ at: 8 * i, target }));
      for (const { at, target } of targets) putU64(new DataView(list.buffer), at, target.address);
      kept.push({ at: place, content: { bytes: list, owned: true, targets, heap: [] } });
    }
    if (!isGone) continue;
    if (kept.length === 0) deleteAttribute(structure, dataset, name);
    else {
      const type = encodeDatatype(T.vlen(T.reference));
      setEncodedAttribute(structure, dataset, name, type, space, { bytes, owned: true, targets: [], heap: kept });
    }
  }
}

/**
 * Brings REFERENCE_LIST of every scale up to date. Between closes it lags behind: scales and variables refer to one another, and one
 * variable that grows would have all others written again. From here on it follows, until the file is opened again.
 */
export function settleScales(
  structure: Structure,
  nodes: readonly ObjectNode[],
  uses = scaleUses(structure, nodes),
): void {
  forgetGone(structure, nodes);
  for (const scale of nodes) {
    const list = uses.get(scale) ?? [];
    if (list.length === 0 && isPrepared(scale)) continue;
    const name = storedScaleAttribute('REFERENCE_LIST', scale.attributes);
    const message = scale.attributes.get(name)?.message;
    if (message && isCurrent(message, list)) message.lags = false;
    else if (list.length > 0) writeReferenceList(structure, scale, name, list);
    else if (message?.lags) deleteAttribute(structure, scale, name);
  }
}

/** Whether a REFERENCE_LIST names these uses, at the addresses where the datasets are. */
function isCurrent({ targets, bytes }: HeaderMessage, uses: readonly ScaleUse[]): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return (
    targets.length === uses.length &&
    targets.every(({ at, target }, i) => {
      const use = uses[i];
      const address = view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
      return use?.dataset === target && address === target.address && view.getUint32(at + 8, true) === use.dimension;
    })
  );
}

function writeReferenceList(structure: Structure, scale: ObjectNode, name: string, uses: readonly ScaleUse[]): void {
  const bytes = new Uint8Array(16 * uses.length);
  const view = new DataView(bytes.buffer);
  const targets: AddressSlot[] = uses.map(({ dataset, dimension }, i) => {
    putU64(view, 16 * i, dataset.address);
    view.setUint32(16 * i + 8, dimension, true);
    return { at: 16 * i, target: dataset };
  });
  const value = { bytes, owned: true, targets, heap: [] };
  setEncodedAttribute(structure, scale, name, encodeDatatype(BACK_REFERENCE), simpleSpace([uses.length]), value);
}
