// Whether the signer of an image takes a configuration. `eif build` runs this program on the building host; it is not
// in the image. It loads what the image's start loads, so that a missing module stops the build. argv: the file and its
// name for messages, or none, to load only.

import { readFileSync } from 'node:fs';
import { parseCeremony } from '../ceremony/definition.ts';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { renderViolations } from '../common/command-line/violations-report.ts';
import { authoritiesOf } from '../signer/tee/authorities.ts';
import { COMPILED } from './compiled.ts';
import { readMeasuredConfiguration, undeclaredHosts } from './measure.ts';
import './start.ts';

const [file, name = file] = process.argv.slice(2);
if (COMPILED !== undefined && file !== undefined && name !== undefined) {
  const compiledCeremony = parseCeremony(COMPILED.ceremony);
  const compiledAuthorities = authoritiesOf(COMPILED.authorities);
  const read = readMeasuredConfiguration(readFileSync(file), { name, compiledCeremony, compiledAuthorities });
  if (!read.ok) {
    process.stderr.write(renderViolations(read.violations));
    process.exitCode = EXIT.configuration;
  } else {
    const undeclared = undeclaredHosts(COMPILED.authorities, read.config);
    for (const hostname of undeclared)
      process.stderr.write(`--ca ${hostname}=…: tee.nitro.egress declares no such host\n`);
    if (undeclared.length > 0) process.exitCode = EXIT.configuration;
  }
}
