// Draws a figure when the site is made, so that no script runs for it: its colours are those of the page, light or dark.
import { renderMermaidSVG } from 'beautiful-mermaid';

const COLOURS = {
  bg: 'var(--vp-c-bg)',
  fg: 'var(--vp-c-text-1)',
  line: 'var(--vp-c-text-2)',
  muted: 'var(--vp-c-text-1)',
  border: 'var(--vp-c-text-3)',
};

export function drawFigure(text) {
  const svg = renderMermaidSVG(text, { ...COLOURS, font: 'system-ui', padding: 12, nodeSpacing: 20, layerSpacing: 30 });
  // Its font would come from another host. An empty line would end the HTML of Markdown.
  return svg
    .replace(/^\s*@import .*$/m, '')
    .replace('<svg ', '<svg role="img" ')
    .replaceAll(/\n\s*\n/g, '\n');
}
