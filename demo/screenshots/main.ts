// `make screenshots`: the pictures in docs/images, made anew from real programs.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportPicture } from './report.ts';
import { terminalSvg } from './terminal-svg.ts';
import { topPicture } from './top.ts';

const IMAGES = join(import.meta.dirname, '../../docs/images');

mkdirSync(IMAGES, { recursive: true });
await reportPicture(join(IMAGES, 'report.png'));
const { lines, columns } = await topPicture();
writeFileSync(join(IMAGES, 'top.svg'), terminalSvg(lines, { columns, title: 'strongroom operator top' }));
process.stdout.write('docs/images/report.png and docs/images/top.svg are made\n');
