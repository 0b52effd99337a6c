// Turns an error that was thrown while a request was served into a reason of the catalogue. An unexpected error becomes
// `internal_error`: its text goes to the log only, and no client sees it.

import { SignerError } from '../api/errors.ts';

export function toSignerError(error: unknown): SignerError {
  if (error instanceof SignerError) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new SignerError('body_too_large');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new SignerError('malformed_body', { hint: 'the body and its headers disagree' });
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new SignerError('malformed_parameter', { hint: 'a part of the path is too long' });
    case 'ECONNRESET': // the client went away in the middle of its body
      return new SignerError('client_closed', { cause: error });
    case 'FST_ERR_BAD_URL':
      return new SignerError('malformed_parameter', { hint: 'the path is not a valid URL path' });
    default:
      return new SignerError('internal_error', { cause: error });
  }
}
