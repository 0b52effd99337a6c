// The command tree's root: which program a command belongs to. Each program reads its own arguments and decides its
// exit code.

const HELP = `strongroom: a remote signer for Ethereum validator keys

Usage: strongroom COMMAND [ARGUMENTS]

Commands:
  server        Run the signer                              strongroom server -c strongroom.yaml
  slashing      Export, import, prune or show the           strongroom slashing export -c strongroom.yaml
                slashing protection records
  ceremony      Plan the master key's custody, make and     strongroom ceremony plan ceremony.yaml
                check age identities, record a ceremony,
                open the root token
  setup         Create the DynamoDB tables, print the       strongroom setup tables -c strongroom.yaml
                policies of keys, roles and tables          strongroom setup kms-policy --help
  operator      Look after a running signer: status, seal,  strongroom operator status
                policies, tokens, keys, slashing records;
                verify an enclave, and tunnel to it for     strongroom operator verify --help
                validator clients                           strongroom operator tunnel --help
  eif           Build, describe and compare images for      strongroom eif build --help
                AWS Nitro Enclaves
  web3signer    Run the signer with Web3Signer's options    strongroom web3signer --help
  parent-proxy  On the parent instance of an enclave:       strongroom parent-proxy -c strongroom.yaml
                carry its connections

Options:
  --help     This text; \`strongroom COMMAND --help\` for a command
  --version  The version
`;

/** The first word tells the entry point of a container that was Web3Signer's: no command of our own begins so. */
const OF_WEB3SIGNER = /^(?:-.+|eth1|eth2|filecoin)$/;
const OWN_OPTIONS = ['--help', '-h', '--version'];

const [command, ...rest] = commandLine(process.argv.slice(2));

function commandLine(argv: readonly string[]): readonly string[] {
  const [first = ''] = argv;
  return OF_WEB3SIGNER.test(first) && !OWN_OPTIONS.includes(first) ? ['web3signer', ...argv] : argv;
}

switch (command) {
  case 'server':
  case 'slashing': {
    const { main } = await import('../enclave/main.ts');
    await main(command, rest);
    break;
  }
  case 'ceremony': {
    const { main } = await import('../ceremony/main.ts');
    const rehearse = {
      summary: 'Run the entire first boot of a ceremony on this machine, with throw-away keys',
      load: async () => (await import('../rehearsal/rehearse.ts')).rehearse,
    };
    process.exitCode = await main(rest, process, new Map([['rehearse', rehearse]]));
    break;
  }
  case 'setup': {
    const { main } = await import('../setup/main.ts');
    process.exitCode = await main(rest);
    break;
  }
  case 'operator': {
    const { main } = await import('../operator/main.ts');
    await main(rest);
    break;
  }
  case 'web3signer': {
    const { main } = await import('../web3signer/main.ts');
    await main(rest);
    break;
  }
  case 'parent-proxy': {
    const { main } = await import('../parent-proxy/main.ts');
    await main(rest);
    break;
  }
  case 'eif': {
    const { main } = await import('../eif/main.ts');
    process.exitCode = await main(rest);
    break;
  }
  case '--version': {
    const { VERSION } = await import('../enclave/api/version.ts');
    process.stdout.write(`strongroom ${VERSION}\n`);
    break;
  }
  case '--help':
  case '-h':
  case 'help':
    process.stdout.write(HELP);
    break;
  default:
    process.stderr.write(command === undefined ? HELP : `strongroom: unknown command ${command}\n\n${HELP}`);
    process.exitCode = 1;
}
