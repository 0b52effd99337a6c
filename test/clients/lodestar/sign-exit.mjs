// A voluntary exit as Lodestar's validator client makes it, over its own packages: its command line exits keys of its
// own only. Arguments: the beacon node's URL, the signer's, public key, index, epoch.

import { ApiError, getClient } from '@lodestar/api';
import { chainConfigFromJson, createIBeaconConfig, createIChainForkConfig } from '@lodestar/config';
import { SignerType, ValidatorStore } from '@lodestar/validator';

const [beaconUrl, signerUrl, pubkeyHex, index, epoch] = process.argv.slice(2);
const { data: spec } = await (await fetch(`${beaconUrl}/eth/v1/config/spec`)).json();
const chainConfig = chainConfigFromJson(spec);
const client = getClient({ baseUrl: beaconUrl }, { config: createIChainForkConfig(chainConfig) });
const genesis = await client.beacon.getGenesis();
ApiError.assert(genesis);
const config = createIBeaconConfig(chainConfig, genesis.response.data.genesisValidatorsRoot);
const signer = { type: SignerType.Remote, pubkey: pubkeyHex, url: signerUrl };
const store = new ValidatorStore(config, {}, {}, null, null, [signer]);
const exit = await store.signVoluntaryExit(pubkeyHex, Number(index), Number(epoch));
ApiError.assert(await client.beacon.submitPoolVoluntaryExit(exit));
console.log(`exit of validator ${index} at epoch ${epoch}`);
