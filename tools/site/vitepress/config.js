// VitePress looks for its configuration here, as a default export.
import { config } from '../config.ts';

export default config;
