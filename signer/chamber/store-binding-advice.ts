// What the log says, and what to do, when a fleet and its slashing store do not belong together.

export const LOST =
  'this signer lost the right to sign: the state table binds its fleet to another slashing store, to a copy of this one, or to this ' +
  'one again after a wait. All signers of a fleet need one store: anti_slashing.backend postgres or dynamodb';
export const LAPSED =
  'this signer could not renew its right to sign for longer than another signer waits before it takes over: it signs nothing until ' +
  'a signer over the same store confirms it, or until it has waited and raised the store to the present itself';
export const OTHER_STORE =
  'NOTHING IS SIGNED: the fleet signs over another slashing store, or over another copy of this one, and a replica that uses it may ' +
  'be alive. All signers of a fleet need one store: anti_slashing.backend postgres or dynamodb. ' +
  'When that replica is gone for good, this one takes over by itself after the seconds named here';
export const NOT_CONFIRMED =
  'nothing is signed yet: no signer of the fleet has confirmed that this slashing store is the one that it signs over. The last ' +
  'signers did not end in order, or this store is a copy. When no signer shows itself for the seconds named here, this one raises ' +
  'its store to the present by itself and goes on';
export const UNKNOWN =
  'nothing is signed yet: the state table does not say over which slashing store the fleet signs. ' +
  'This signer waits until any that signs would have shown itself, then raises its store to the present and goes on';
export const BEHIND =
  'NOTHING IS SIGNED: the clock of this signer is behind that of the state table, or of the last signer, by the seconds named here. ' +
  'A jump by this clock would be too low. Set the clock: this signer goes on by itself then';
export const RAISED_BY_HAND =
  'the slashing store cannot be raised to the present by itself: this signer goes on with the last jump by hand, made since it was used';
export const TAKEN =
  'this signer binds the fleet to its own slashing store: no signer has shown itself for longer than one may go on without. ' +
  'The store was raised to the present, which costs a validator at most one vote';
