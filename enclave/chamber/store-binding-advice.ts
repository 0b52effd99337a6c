// What the log says, and what to do, when a fleet and its slashing store do not belong together.

export const LOST =
  'this signer lost the right to sign: its fleet is bound to another slashing store now, or to this one anew. ' +
  'All signers of a fleet need one store: anti_slashing.backend postgres or dynamodb';
export const OTHER_STORE =
  'NOTHING IS SIGNED: the fleet signs over another slashing store, and a replica that uses it is alive. ' +
  'All signers of a fleet need one store: anti_slashing.backend postgres or dynamodb. ' +
  'When that replica is gone for good, this one takes over by itself after the seconds named here';
export const UNKNOWN =
  'nothing is signed yet: the state table does not say over which slashing store the fleet signs. ' +
  'This signer waits until whoever signs would have shown itself, then raises its store to the present and goes on';
export const OLDER_COPY =
  'NOTHING IS SIGNED: the slashing store has an older revision than its fleet noted: it lost records, or is a copy of the store ' +
  'that others sign over. When nobody else shows itself, this signer raises the store to the present by itself and goes on';
export const TAKEN =
  'this signer takes the fleet over to its own slashing store: nobody has used the other one for longer than a signer may ' +
  'go on without showing itself. The store was raised to the present, which costs a validator at most one vote';
