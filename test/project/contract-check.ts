// The contract (contract.d.ts) against what is built: compiled by contract.test.ts, which leaves out what not-built.ts
// names. One entry a name. An entry that does not compile says which type does not fit which.
import type * as B from 'h5log';
import type * as C from './contract.d.ts';

/** Compiles only if A may be used wherever To is asked for. */
type Fits<A extends To, To> = A;

/** The static half of a class; constructors are not part of the contract. */
type Statics<K> = { [N in Exclude<keyof K, 'prototype'>]: K[N] };

// TypeScript compares the parameters of methods in both directions, so a method that accepts too little would fit. These
// two name such methods: every list of arguments that the contract allows must be allowed by what is built.
type Args<F> = F extends {
  (...args: infer P): unknown;
  (...args: infer Q): unknown;
  (...args: infer R): unknown;
  (...args: infer S): unknown;
  (...args: infer T): unknown;
}
  ? P | Q | R | S | T
  : F extends { (...args: infer P): unknown; (...args: infer Q): unknown }
    ? P | Q
    : F extends (...args: infer P) => unknown
      ? P
      : never;
type Narrower<Built, Contract> = {
  [N in keyof Contract & keyof Built]: Args<Contract[N]> extends Args<Built[N]> ? never : N;
}[keyof Contract & keyof Built];

/** Compiles only if no name is left over. */
type None<Names extends never> = Names;

/** They take a dataset, and what is built knows its own only. */
type TakeDatasets = 'attachScale' | 'detachScale';
type NarrowerDataset<Built, Contract> = Exclude<Narrower<Built, Contract>, TakeDatasets>;

type Compound = C.Described<{ a: number }, { a: number }[], { a: number | 'high' }>;

export interface Checks {
  NumberType: [Fits<B.NumberType, C.NumberType>, Fits<C.NumberType, B.NumberType>];
  TypedArray: [Fits<B.TypedArray, C.TypedArray>, Fits<C.TypedArray, B.TypedArray>];
  Described: [Fits<B.Described<1, 2, 3>, C.Described<1, 2, 3>>, Fits<C.Described<1, 2, 3>, B.Described<1, 2, 3>>];
  DType: [Fits<B.DType, C.DType>, Fits<C.DType, B.DType>];
  ValueOf: [ValuesOf<'int8'>, ValuesOf<'uint64'>, ValuesOf<C.DType>, ValuesOf<Compound>, ValuesOf<string>];
  InputOf: [InputsOf<'int8'>, InputsOf<'uint64'>, InputsOf<C.DType>, InputsOf<Compound>];
  ArrayOf: [ArraysOf<'int8'>, ArraysOf<'float16'>, ArraysOf<'int64'>, ArraysOf<C.DType>, ArraysOf<Compound>];
  T: [Fits<typeof B.T, typeof C.T>, Fits<typeof C.T, typeof B.T>, None<Narrower<typeof B.T, typeof C.T>>];
  Coordinates: [Fits<B.Coordinates, C.Coordinates>, Fits<C.Coordinates, B.Coordinates>];
  Slab: [Fits<B.Slab, C.Slab>, Fits<C.Slab, B.Slab>];
  Selection: [Fits<B.Selection, C.Selection>, None<Narrower<B.Selection, C.Selection>>];
  Where: Fits<B.Where, C.Where>;
  select: [Fits<typeof B.select, typeof C.select>, None<Narrower<typeof B.select, typeof C.select>>];
  Memory: Fits<B.Memory, C.Memory>;
  ReadOptions: Fits<B.ReadOptions, C.ReadOptions>;
  Columns: [Fits<B.Columns, C.Columns>, Fits<C.Columns, B.Columns>];
  PublishWay: [Fits<B.PublishWay, C.PublishWay>, Fits<C.PublishWay, B.PublishWay>];
  Publish: [Fits<B.Publish, C.Publish>, Fits<C.Publish, B.Publish>];
  PublishResult: Fits<B.PublishResult, C.PublishResult>;
  FilterCodec: [Fits<B.FilterCodec, C.FilterCodec>, Fits<C.FilterCodec, B.FilterCodec>];
  FilterInfo: Fits<B.FilterInfo, C.FilterInfo>;
  registerFilter: Fits<typeof B.registerFilter, typeof C.registerFilter>;
  Filter: [Fits<B.Filter, C.Filter>, Fits<C.Filter, B.Filter>];
  Dataset: [
    Fits<B.Dataset, C.Dataset>,
    Fits<B.Dataset<'float64'>, C.Dataset<'float64'>>,
    None<NarrowerDataset<B.Dataset<'float64'>, C.Dataset<'float64'>>>,
    Fits<B.Dataset<'int64'>, C.Dataset<'int64'>>,
    None<NarrowerDataset<B.Dataset<'int64'>, C.Dataset<'int64'>>>,
    Fits<B.Dataset<Compound>, C.Dataset<Compound>>,
    None<NarrowerDataset<B.Dataset<Compound>, C.Dataset<Compound>>>,
    Fits<[number, B.Dataset], Parameters<B.Dataset[TakeDatasets]>>,
  ];
  AttributeValue: [Fits<B.AttributeValue, C.AttributeValue>, Fits<C.AttributeValue, B.AttributeValue>];
  Attributes: [Fits<B.Attributes, C.Attributes>, None<Narrower<B.Attributes, C.Attributes>>];
  Group: [Fits<B.Group, C.Group>, None<Narrower<B.Group, C.Group>>];
  Commit: [Fits<B.Commit, C.Commit>, Fits<C.Commit, B.Commit>];
  Communicator: [Fits<B.Communicator, C.Communicator>, Fits<C.Communicator, B.Communicator>];
  ByteStorage: [Fits<B.ByteStorage, C.ByteStorage>, Fits<C.ByteStorage, B.ByteStorage>];
  CommonOptions: [Fits<B.CommonOptions, C.CommonOptions>, Fits<C.CommonOptions, B.CommonOptions>];
  CreateOptions: [Fits<B.CreateOptions, C.CreateOptions>, Fits<C.CreateOptions, B.CreateOptions>];
  OpenOptions: [Fits<B.OpenOptions, C.OpenOptions>, Fits<C.OpenOptions, B.OpenOptions>];
  File: [
    Fits<B.File, C.File>,
    None<Narrower<B.File, C.File>>,
    Fits<Statics<typeof B.File>, Statics<typeof C.File>>,
    None<Narrower<Statics<typeof B.File>, Statics<typeof C.File>>>,
  ];
  H5LogFile: [Fits<B.H5LogFile, C.H5LogFile>, Fits<typeof B.H5LogFile, typeof B.File>];
  ErrorCode: [Fits<B.ErrorCode, C.ErrorCode>, Fits<C.ErrorCode, B.ErrorCode>];
  H5LogError: [Fits<B.H5LogError, C.H5LogError>, Fits<typeof B.H5LogError, abstract new (...args: never) => Error>];
  isH5LogError: [Fits<typeof B.isH5LogError, typeof C.isH5LogError>];
  solo: [Fits<typeof B.solo, typeof C.solo>, Fits<typeof C.solo, typeof B.solo>];
  runThreads: Fits<typeof import('h5log/threads').runThreads, typeof C.runThreads>;
  mpi: Fits<typeof import('h5log/mpi').mpi, typeof C.mpi>;
  netcdf: [
    Fits<ReturnType<typeof import('h5log/netcdf').netcdf>, ReturnType<typeof C.netcdf>>,
    Fits<Parameters<typeof C.netcdf>[1], Parameters<typeof import('h5log/netcdf').netcdf>[1]>,
    Fits<B.File, Parameters<typeof import('h5log/netcdf').netcdf>[0]>,
  ];
  NcDimension: Fits<import('h5log/netcdf').NcDimension, C.NcDimension>;
  NcVariable: Fits<import('h5log/netcdf').NcVariable, C.NcVariable>;
  NcGroup: Fits<import('h5log/netcdf').NcGroup, C.NcGroup>;
}

type ValuesOf<D> = [Fits<B.ValueOf<D>, C.ValueOf<D>>, Fits<C.ValueOf<D>, B.ValueOf<D>>];
type InputsOf<D> = [Fits<B.InputOf<D>, C.InputOf<D>>, Fits<C.InputOf<D>, B.InputOf<D>>];
type ArraysOf<D> = [Fits<B.ArrayOf<D>, C.ArrayOf<D>>, Fits<C.ArrayOf<D>, B.ArrayOf<D>>];
