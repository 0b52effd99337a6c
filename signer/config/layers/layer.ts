// One layer of the configuration: what it sets, and where each value was written. One schema judges every layer.

import type { Violation } from '../../../common/command-line/violations.ts';
import type { OptionPath } from '../options.ts';

export interface Setting {
  readonly value: unknown;
  originAt(path: readonly PropertyKey[]): string;
}

export interface Layer {
  readonly settings: ReadonlyMap<OptionPath, Setting>;
  /** They go over the whole object, whichever layer that comes from. */
  readonly members?: readonly MemberSetting[];
  /** Sections that are written down, even when they hold no option, and where. */
  readonly sections: ReadonlyMap<string, string>;
  readonly violations: readonly Violation[];
  readonly unreadable?: true;
}

export interface MemberSetting {
  readonly option: OptionPath;
  /** The option with this member, over what another layer says of it. */
  over(base: Setting | undefined): Setting;
}
