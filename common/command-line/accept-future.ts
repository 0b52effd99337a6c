// What `slashing import --accept-future` says of itself, on the signer's machine and over its API.

export const ACCEPT_FUTURE =
  'Take entries that lie ahead of the clock, too, which refuse the file otherwise. Their keys sign no blocks, or no ' +
  'votes, until that time has come, other keys sign on; `strongroom slashing status` names them';
