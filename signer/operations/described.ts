// A message is described once: the members that the parser takes are those that are hashed, in the same order. Each
// part has its schema (what clients may write) and its SSZ type (what is hashed), so that neither can be of another
// message than the other.

import {
  BitArray,
  BitListType,
  BooleanType,
  ByteListType,
  ByteVectorType,
  ContainerType,
  ListBasicType,
  ListCompositeType,
  ProgressiveByteListType,
  ProgressiveContainerType,
  ProgressiveListCompositeType,
  type Type,
  UintBigintType,
  VectorCompositeType,
} from '@chainsafe/ssz';
import { z } from 'zod';
import * as wire from '../api/primitives.ts';
import { Bytes20, Bytes32, Bytes48, Bytes96, SlotOrEpoch, Uint64 } from './leaves.ts';

interface Described<Schema extends z.ZodType = z.ZodType> {
  readonly schema: Schema;
  readonly type: Type<never>;
}

type Members = Readonly<Record<string, Described>>;

type SchemasOf<Fields extends Members> = { [Name in keyof Fields]: Fields[Name]['schema'] };

interface DescribedMessage<Fields extends Members> extends Described<z.ZodObject<SchemasOf<Fields>>> {
  readonly members: SchemasOf<Fields>;
  readonly rootOf: (message: z.output<z.ZodObject<SchemasOf<Fields>>>) => Uint8Array;
}

function described<Schema extends z.ZodType>(schema: Schema, type: unknown): Described<Schema> {
  return { schema, type: type as Type<never> };
}

export const uint64 = described(wire.uint64, Uint64);
export const uint256 = described(wire.uint256, new UintBigintType(32));
export const slotOrEpoch = described(wire.slotOrEpoch, SlotOrEpoch);
export const boolean = described(wire.boolean, new BooleanType());
export const address = described(wire.address, Bytes20);
export const root = described(wire.root, Bytes32);
export const publicKey = described(wire.publicKey, Bytes48);
export const signature = described(wire.signature, Bytes96);

export const bytes48 = described(wire.bytes(48), Bytes48);
export const bytes256 = described(wire.bytes(256), new ByteVectorType(256));

export function byteList(limit: number, min = 0) {
  return described(wire.byteList(limit, min), new ByteListType(limit));
}

export const progressiveByteList = described(wire.byteList(), new ProgressiveByteListType());

export function presetBytes<Preset extends string>(lengths: Readonly<Record<Preset, number>>, preset: Preset) {
  return described(wire.bytes(...Object.values<number>(lengths)), new ByteVectorType(lengths[preset]));
}

/** Hashes the parser's bits. */
class Bits extends BitListType {
  override hashTreeRootInto(bits: unknown, output: Uint8Array, offset: number): void {
    const { bytes, length } = bits as wire.Bits;
    super.hashTreeRootInto(new BitArray(bytes, length), output, offset);
  }
}

export function bitlist(limit: number) {
  return described(wire.bitlist(limit), new Bits(limit));
}

export function uint64List(limit: number) {
  return described(wire.list(wire.uint64, limit), new ListBasicType(Uint64, limit));
}

export function list<Schema extends z.ZodType>({ schema, type }: Described<Schema>, limit: number) {
  return described(wire.list(schema, limit), new ListCompositeType(type as never, limit));
}

export function vector<Schema extends z.ZodType>({ schema, type }: Described<Schema>, length: number) {
  return described(wire.vector(schema, length), new VectorCompositeType(type as never, length));
}

/** EIP-7916: it has no limit of its own, so `most` is more than a body has room for. */
export function progressiveList<Schema extends z.ZodType>({ schema, type }: Described<Schema>, most: number) {
  return described(wire.list(schema, most), new ProgressiveListCompositeType(type as never));
}

export function container<Fields extends Members>(fields: Fields): DescribedMessage<Fields> {
  return message(fields, (types) => new ContainerType(types as never));
}

/** EIP-7495, all members active: it mixes in which of them are. */
export function progressiveContainer<Fields extends Members>(fields: Fields): DescribedMessage<Fields> {
  return message(
    fields,
    (types) =>
      new ProgressiveContainerType(
        types as never,
        Object.keys(types).map(() => true),
      ),
  );
}

function message<Fields extends Members>(
  fields: Fields,
  typeOf: (types: Record<string, Type<never>>) => unknown,
): DescribedMessage<Fields> {
  const entries = Object.entries(fields);
  const members = Object.fromEntries(entries.map(([name, { schema }]) => [name, schema])) as SchemasOf<Fields>;
  const type = typeOf(Object.fromEntries(entries.map(([name, part]) => [name, part.type]))) as Type<never>;
  return { schema: z.object(members), members, type, rootOf: (value) => type.hashTreeRoot(value as never) };
}
