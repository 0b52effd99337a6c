// Options of Web3Signer about slashing protection, which is on here whatever they say, and of its commands for the
// record.

import { accepted, honoured, refused, type Scope, type Web3SignerOption } from '../option.ts';

const DATABASE = 'does nothing: strongroom keeps a record of its own, in a file';
const PRUNING = 'does nothing: strongroom prunes its own record, in small steps';
const NO_HIGH = 'is about a high watermark, which strongroom does not have';

export const SLASHING: readonly Web3SignerOption[] = [
  text(
    '',
    'data-path',
    honoured(
      'the slashing record is `slashing_protection.sqlite` in it; without it in the first of ' +
        '--key-store-path, --keystores-path and the folder of the start, and a warning says where',
    ),
  ),
  flag(
    'eth2',
    'slashing-protection-enabled',
    accepted('never switches slashing protection off: it stays on, with a record of its own', ['true']),
  ),
  text(
    'eth2',
    'slashing-protection-db-url',
    accepted(
      'is not used: strongroom keeps a record of its own. That database is imported once, ' +
        'before the first start, which is refused until then',
    ),
  ),
  text('eth2', 'slashing-protection-db-username', accepted(`${DATABASE}. The import takes it`)),
  text('eth2', 'slashing-protection-db-password', accepted(`${DATABASE}. The import takes it, from the environment`)),
  text(
    'eth2',
    'slashing-protection-db-health-check-interval-milliseconds',
    accepted(`${DATABASE}; server.health_check says how often it is looked at`),
  ),
  text(
    'eth2',
    'slashing-protection-db-health-check-timeout-milliseconds',
    accepted(`${DATABASE}; server.health_check says how long a look may take`),
  ),
  text('eth2', 'slashing-protection-db-pool-configuration-file', accepted(DATABASE)),
  flag('eth2', 'Xslashing-protection-db-connection-pool-enabled', accepted(DATABASE)),
  flag('eth2', 'slashing-protection-pruning-enabled', accepted(PRUNING, ['true'])),
  flag('eth2', 'slashing-protection-pruning-at-boot-enabled', accepted(PRUNING)),
  text('eth2', 'slashing-protection-pruning-epochs-to-keep', accepted(PRUNING)),
  text('eth2', 'slashing-protection-pruning-interval', accepted(PRUNING)),
  text('eth2', 'slashing-protection-pruning-slots-per-epoch', accepted(PRUNING)),
  text('eth2', 'slashing-protection-pruning-db-pool-configuration-file', accepted(PRUNING)),
  text('eth2 export', 'to', honoured('`strongroom slashing export --output`')),
  text('eth2 import', 'from', honoured('`strongroom slashing import`')),
  text(
    'eth2 watermark-repair',
    'epoch',
    honoured('`strongroom slashing jump --epoch`, for every key, also those without records'),
  ),
  text(
    'eth2 watermark-repair',
    'slot',
    honoured('`strongroom slashing jump --slot`, for every key, also those without records'),
  ),
  flag(
    'eth2 watermark-repair',
    'set-high-watermark',
    refused(NO_HIGH, 'to end signing at a slot, stop the signer, or `strongroom slashing retire` the keys', ['false']),
  ),
  flag(
    'eth2 watermark-repair',
    'remove-high-watermark',
    refused(NO_HIGH, 'leave it out: nothing has to be removed', ['false']),
  ),
];

function text(scope: Scope, name: string, becomes: Web3SignerOption['becomes']): Web3SignerOption {
  return { names: [name], scope, form: 'text', becomes };
}

function flag(scope: Scope, name: string, becomes: Web3SignerOption['becomes']): Web3SignerOption {
  return { names: [name], scope, form: 'boolean', becomes };
}
