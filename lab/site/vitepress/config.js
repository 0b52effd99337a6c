// VitePress looks for its configuration here, as a default export.
import { configWith } from '../config.ts';
import { drawFigure } from './figures.js';

export default configWith(drawFigure);
