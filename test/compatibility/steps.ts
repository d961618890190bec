import type { Attributes, AttributeValue, Commit, File, Filter, TypedArray } from 'h5log';
import { type Place, whereOf } from './places.ts';
import { dataOf, dtypeOf, elementOf, type Json, type TypeText } from './types.ts';

/** What is done to a file, as JSON: the library does it to a file, the model to its memory. */
export type Step =
  | { readonly do: 'group'; readonly path: string }
  | {
      readonly do: 'dataset';
      readonly path: string;
      readonly dtype: TypeText;
      readonly shape: readonly number[];
      readonly maxShape?: readonly (number | null)[];
      readonly fill?: Json;
      readonly chunks?: readonly number[];
      readonly filters?: readonly Filter[];
      readonly attributes?: Readonly<Record<string, string>>;
    }
  | {
      readonly do: 'write';
      readonly path: string;
      /** Of the dataset: JSON alone does not say which elements the values are. */
      readonly dtype: TypeText;
      readonly values: readonly Json[];
      readonly where?: Place;
      /** The values are an array of this shape, of which these elements are written. */
      readonly memory?: { readonly shape: readonly number[]; readonly where: Place };
      /** These numbers are handed over instead, and become `values` by conversion. */
      readonly converted?: { readonly from: TypeText; readonly values: readonly Json[] };
      /** Without it every rank would write; programs of several ranks always say which. */
      readonly rank?: number;
    }
  | {
      readonly do: 'writeMany';
      readonly path: string;
      readonly dtype: TypeText;
      readonly values: readonly Json[];
      readonly starts: readonly number[];
      readonly counts: readonly number[];
      readonly rank?: number;
    }
  | { readonly do: 'resize'; readonly path: string; readonly shape: readonly number[] }
  | {
      readonly do: 'attribute';
      readonly path: string;
      readonly name: string;
      readonly dtype: TypeText;
      readonly shape: readonly number[] | null;
      readonly values: readonly Json[];
      /** The library chooses type and shape by the value: a list of numbers, or what an element is. */
      readonly implied?: 'list' | 'value';
    }
  | { readonly do: 'delete attribute'; readonly path: string; readonly name: string }
  | { readonly do: 'soft link'; readonly path: string; readonly target: string }
  | { readonly do: 'hard link'; readonly path: string; readonly target: string }
  | { readonly do: 'external link'; readonly path: string; readonly file: string; readonly target: string }
  | { readonly do: 'move'; readonly path: string; readonly to: string }
  | { readonly do: 'delete'; readonly path: string }
  /** `remember`: the state belongs to the expected contents. */
  | { readonly do: 'flush'; readonly remember?: boolean };

/** Does a step to a file, as the rank that the file is open on; gives the commit of a flush. */
export function doStep(file: File, step: Step): Commit | undefined {
  switch (step.do) {
    case 'group':
      file.createGroup(step.path);
      break;
    case 'dataset': {
      const { do: _, path, dtype, fill, ...rest } = step;
      const given = fill === undefined ? {} : { fill: elementOf(dtype, fill) as never };
      file.createDataset(path, { ...rest, ...given, dtype: dtypeOf(dtype) });
      break;
    }
    case 'write':
    case 'writeMany':
      if (step.rank === undefined || step.rank === file.comm.rank) doWrite(file, step);
      break;
    case 'flush':
      return file.flushSync();
    case 'resize':
      file.dataset(step.path).resize(step.shape);
      break;
    case 'attribute':
      setAttribute(file, step);
      break;
    case 'delete attribute':
      attributesOf(file, step.path).delete(step.name);
      break;
    case 'soft link':
      file.createSoftLink(step.path, step.target);
      break;
    case 'hard link':
      file.createHardLink(step.path, step.target);
      break;
    case 'external link':
      file.createExternalLink(step.path, step.file, step.target);
      break;
    case 'move':
      file.move(step.path, step.to);
      break;
    case 'delete':
      file.delete(step.path);
      break;
  }
  return undefined;
}

function doWrite(file: File, step: Extract<Step, { do: 'write' | 'writeMany' }>): void {
  const dataset = file.dataset(step.path);
  const { from, values } = (step.do === 'write' && step.converted) || { from: step.dtype, values: step.values };
  const data = dataOf(from, values) as TypedArray;
  if (step.do === 'writeMany') dataset.writeMany(data, step.starts, step.counts);
  else {
    const where = step.where && whereOf(step.where);
    const { memory } = step;
    dataset.write(data, where, memory && { memory: { shape: memory.shape, where: whereOf(memory.where) } });
  }
}

function attributesOf(file: File, path: string): Attributes {
  const object = file.get(path);
  if (!object) throw new Error(`there is no ${path}`);
  return object.attributes;
}

function setAttribute(file: File, step: Extract<Step, { do: 'attribute' }>): void {
  const { path, name, dtype, shape, values, implied } = step;
  const attributes = attributesOf(file, path);
  const value = shape?.length === 0 ? elementOf(dtype, values[0] as Json) : dataOf(dtype, values);
  const given = shape === null ? null : implied === 'list' ? Array.from(value as ArrayLike<unknown>) : value;
  if (implied) attributes.set(name, given as AttributeValue);
  else if (shape === null) attributes.set(name, null, { dtype: dtypeOf(dtype) });
  else attributes.set(name, given as AttributeValue, { dtype: dtypeOf(dtype), shape });
}
