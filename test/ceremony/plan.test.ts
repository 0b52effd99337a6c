// What a ceremony survives, and what it is warned about.

import { describe, expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { planCeremony } from '../../ceremony/plan.ts';
import { keyArn, multiRegionArn } from '../config/loading.ts';
import { type CeremonyOf, ceremonyOf, RECIPIENT } from './custody.ts';

const OTHER_RECIPIENT = 'age1lggyhqrw2nlhcxprm67z43rta597azn8gknawjehu9d9dl0jq3yqqvfafg';

function inAccount(arn: string, account: string): string {
  return arn.replace('111122223333', account);
}

function warningsOf(of: CeremonyOf): string[] {
  return planCeremony(ceremonyOf(of)).warnings.map(({ code }) => code);
}

/** 2 of 3 in three accounts and three regions, two recipients, nothing retired. */
const SOUND = {
  generation: 1,
  kms_threshold: 2,
  kms_keys: [
    { arns: [keyArn(1, 'eu-central-1')] },
    { arns: [inAccount(keyArn(2, 'eu-west-1'), '222222222222')] },
    { arns: [inAccount(keyArn(3, 'us-east-1'), '333333333333')] },
  ],
  root_token_recipients: [RECIPIENT, OTHER_RECIPIENT],
};

describe('a plan', () => {
  it('of a sound ceremony has no warnings, and every single loss is survivable', () => {
    const { warnings, losses } = planCeremony(parseCeremony(SOUND));
    expect(warnings).toEqual([]);
    expect(losses).toHaveLength(6);
    expect(losses.every(({ survivable, keysLeft }) => survivable && keysLeft === 2)).toBe(true);
  });

  it('counts a multi-region key as lost with its account, and not with one of its regions', () => {
    const keys = [
      [multiRegionArn(1, 'eu-west-1'), multiRegionArn(1, 'us-east-1')],
      [inAccount(keyArn(2, 'eu-west-1'), '222222222222')],
    ];
    expect(planCeremony(ceremonyOf({ threshold: 1, keys })).losses).toEqual([
      { of: 'account', name: '111122223333', keysLeft: 1, survivable: true },
      { of: 'account', name: '222222222222', keysLeft: 1, survivable: true },
      { of: 'region', name: 'eu-west-1', keysLeft: 1, survivable: true },
      { of: 'region', name: 'us-east-1', keysLeft: 2, survivable: true },
    ]);
  });
});

describe('a plan warns when', () => {
  it.each<[string, CeremonyOf, string]>([
    ['one key suffices', { threshold: 1, keys: 3 }, 'threshold_one'],
    ['every key is needed', { threshold: 3, keys: 3 }, 'no_loss_survivable'],
    ['there is a single key', { threshold: 1, keys: 1 }, 'no_loss_survivable'],
    ['one account can open the master key alone', { threshold: 2, keys: 3 }, 'account_holds_threshold'],
    ['the loss of one account is the end', { threshold: 2, keys: 3 }, 'account_loss'],
    ['no signer starts while one region is down', { threshold: 2, keys: 3 }, 'region_loss'],
    [
      'a multi-region key lists one ARN',
      { threshold: 1, keys: [[multiRegionArn(1, 'eu-west-1')]] },
      'replicas_not_listed',
    ],
    ['there is one recipient', { threshold: 2, keys: 3 }, 'single_recipient'],
    ['retired keys are still accepted', { threshold: 2, keys: 3, retired: [[keyArn(9)]] }, 'retired_keys'],
  ])('%s', (_, of, code) => {
    expect(warningsOf(of)).toContain(code);
  });
});
