// docs/reference/errors.md, from the catalogue of reasons.

import { ERROR_REASONS, type ErrorReason } from '../errors.ts';
import { REMEDIES } from './error-remedies.ts';

export function errorReference(): string {
  const rows = Object.entries(ERROR_REASONS).map(
    ([reason, { status, message }]) =>
      `| ${status} | \`${reason}\` | ${message.replaceAll('|', '\\|')} | ${REMEDIES[reason as ErrorReason]} |`,
  );
  return `# Errors

Generated from the source by \`make docs\`.

Every error body, on every route, is JSON:

\`\`\`json
{ "code": 412, "reason": "double_vote", "message": "slashing protection refused the request", "request_id": "01J…" }
\`\`\`

\`code\` repeats the HTTP status and \`request_id\` the \`X-Request-Id\` header. \`reason\` is one of these and stays as it is;
\`message\` is for people, may be followed by a hint, and may change.

| Status | Reason | Message | What to do |
|---|---|---|---|
${rows.join('\n')}
`;
}
