// What the program of an ordinary host has: every slashing store, both BLS cores, key files, plain and TLS listeners,
// the reload, and the outside as the system gives it.

import { DEFAULT_AWS_ACCESS } from '../signer/aws/access.ts';
import { openBlsCore } from '../signer/bls/open-either.ts';
import type { SignerParts } from '../signer/boot/parts.ts';
import { mountAccounts } from '../signer/http/routes/distributed.ts';
import { readConfigFile } from './config/consensus-config.ts';
import { kernelClock } from './kernel-clock.ts';
import { openKeyFiles } from './key-files.ts';
import { readKnownClients } from './known-clients.ts';
import { openListeners } from './listeners.ts';
import { otherNames } from './metric-names.ts';
import { describeRoutes } from './openapi/document.ts';
import { receiptsFolder } from './receipts-folder.ts';
import { openReload } from './reload.ts';
import { SERVICE_STORES } from './stores.ts';

export const SERVICE_PARTS: SignerParts = {
  stores: SERVICE_STORES,
  openBlsCore,
  openKeyFiles,
  readConfigFile,
  openEgress: async () => undefined,
  openAwsAccess: async () => DEFAULT_AWS_ACCESS,
  openReceiptsFolder: receiptsFolder,
  openTime: async ({ clock }) => ({ ...clock, witnesses: [kernelClock] }),
  openListeners,
  describeRoutes,
  mountAccounts,
  openReload,
  readKnownClients,
  otherMetricNames: otherNames,
};
