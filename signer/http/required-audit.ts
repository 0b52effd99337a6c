// audit.required: no signature leaves before its audit line is with the system that the log goes to. A destination that
// takes no lines refuses all of them, before anything is signed, until it has taken what waits.

import { inTime } from '../../common/flow/in-time.ts';
import type { Logger } from '../../common/observe/logger.ts';

export interface RequiredAudit {
  /** Why nothing may be signed now. */
  hindrance(): 'audit_unavailable' | undefined;
  /** Whether the line that was written last, and those before it, are with the system. */
  confirmed(): Promise<boolean>;
}

const CONFIRM_TIMEOUT_MS = 2_000;

export function requiredAudit(log: Pick<Logger, 'isLosing' | 'confirmed'>): RequiredAudit {
  /** Lines that are late, and neither taken nor dropped yet. */
  let late = 0;
  return {
    hindrance: () => (late > 0 || log.isLosing() ? 'audit_unavailable' : undefined),
    async confirmed() {
      const line = log.confirmed();
      const isTaken = await inTime(line, CONFIRM_TIMEOUT_MS, () => {
        late += 1;
        void line.then(() => {
          late -= 1;
        });
        return false;
      });
      return isTaken && !log.isLosing();
    },
  };
}
