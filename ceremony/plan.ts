// Predicts which losses of keys, accounts and regions a ceremony survives, and what an auditor would ask about. It
// calls no key.

import { extendedOnce } from '../common/formats/register.ts';
import { type Ceremony, type CustodyKey, canonicalBytes, ceremonyDigest } from './definition.ts';
import { isMultiRegion, keyArn } from './key-arn.ts';

export interface CeremonyPlan {
  readonly ceremony: Ceremony;
  readonly canonical: string;
  readonly digest: string;
  readonly pcr17: string;
  readonly losses: readonly Loss[];
  readonly warnings: readonly PlanWarning[];
}

/** A key with a replica elsewhere is not lost with its region. */
export interface Loss {
  readonly of: 'account' | 'region';
  readonly name: string;
  readonly keysLeft: number;
  readonly survivable: boolean;
}

interface PlanWarning {
  readonly code:
    | 'threshold_one'
    | 'no_loss_survivable'
    | 'account_holds_threshold'
    | 'account_loss'
    | 'region_loss'
    | 'replicas_not_listed'
    | 'single_recipient'
    | 'retired_keys';
  readonly message: string;
}

export function planCeremony(ceremony: Ceremony): CeremonyPlan {
  const digest = ceremonyDigest(ceremony);
  return {
    ceremony,
    canonical: canonicalBytes(ceremony).toString('ascii'),
    digest: digest.toString('hex'),
    pcr17: extendedOnce(digest).toString('hex'),
    losses: [...lossesOf(ceremony, 'account'), ...lossesOf(ceremony, 'region')],
    warnings: [...thresholdWarnings(ceremony), ...placeWarnings(ceremony), ...restWarnings(ceremony)],
  };
}

export function spareKeys({ kmsKeys, kmsThreshold }: Ceremony): number {
  return kmsKeys.length - kmsThreshold;
}

function lossesOf({ kmsKeys, kmsThreshold }: Ceremony, of: Loss['of']): Loss[] {
  return namesOf(kmsKeys, of).map((name) => {
    const keysLeft = kmsKeys.filter((key) => placesOf(key, of).some((place) => place !== name)).length;
    return { of, name, keysLeft, survivable: keysLeft >= kmsThreshold };
  });
}

function thresholdWarnings(ceremony: Ceremony): PlanWarning[] {
  const warnings: PlanWarning[] = [];
  if (ceremony.kmsThreshold === 1) {
    warnings.push({
      code: 'threshold_one',
      message:
        'kms_threshold is 1: every custody key alone opens the master key, and whoever may encrypt under one can plant another',
    });
  }
  if (spareKeys(ceremony) === 0) {
    warnings.push({
      code: 'no_loss_survivable',
      message: 'kms_threshold is the number of kms_keys: the loss of any custody key loses the master key',
    });
  }
  return warnings;
}

function placeWarnings(ceremony: Ceremony): PlanWarning[] {
  const { kmsKeys, kmsThreshold } = ceremony;
  const held = namesOf(kmsKeys, 'account').map((name) => ({
    name,
    count: kmsKeys.filter((key) => placesOf(key, 'account').includes(name)).length,
  }));
  const lost = (of: Loss['of']) => lossesOf(ceremony, of).filter(({ survivable }) => !survivable);
  return [
    ...held
      .filter(({ count }) => count >= kmsThreshold)
      .map(
        ({ name, count }): PlanWarning => ({
          code: 'account_holds_threshold',
          message: `account ${name} holds ${count} custody keys and ${kmsThreshold} suffice: whoever administers it can open the master key alone`,
        }),
      ),
    ...lost('account').map(
      ({ name, keysLeft }): PlanWarning => ({
        code: 'account_loss',
        message: `the loss of account ${name} leaves ${keysLeft} of the ${kmsThreshold} custody keys that are needed`,
      }),
    ),
    ...lost('region').map(
      ({ name, keysLeft }): PlanWarning => ({
        code: 'region_loss',
        message: `while region ${name} is down, ${keysLeft} of the ${kmsThreshold} custody keys that are needed are left: no signer can start`,
      }),
    ),
  ];
}

function restWarnings({ kmsKeys, retiredKmsKeys, rootTokenRecipients }: Ceremony): PlanWarning[] {
  const warnings: PlanWarning[] = [];
  for (const [at, { arns }] of kmsKeys.entries()) {
    const [only = ''] = arns;
    if (arns.length === 1 && isMultiRegion(keyArn(only))) {
      warnings.push({
        code: 'replicas_not_listed',
        message: `custody key ${at + 1} is a multi-region key with one ARN: list every replica, the others are never called`,
      });
    }
  }
  if (rootTokenRecipients.length === 1) {
    warnings.push({
      code: 'single_recipient',
      message: 'there is one root token recipient: if that identity is lost the root token has to be made again',
    });
  }
  if (retiredKmsKeys.length > 0) {
    warnings.push({
      code: 'retired_keys',
      message: 'retired_kms_keys are still accepted: remove them when every replica runs this generation',
    });
  }
  return warnings;
}

function namesOf(keys: readonly CustodyKey[], of: Loss['of']): string[] {
  return [...new Set(keys.flatMap((key) => placesOf(key, of)))].sort();
}

function placesOf({ arns }: CustodyKey, of: Loss['of']): string[] {
  return arns.map((arn) => keyArn(arn)[of]);
}
