// `strongroom parent-proxy …`, as it is.

import { main } from '../../../../parent-proxy/main.ts';

await main(process.argv.slice(2));
