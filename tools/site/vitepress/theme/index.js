// VitePress's own theme with the fonts of the reader's machine, and the figures.
import Theme from 'vitepress/theme-without-fonts';
import Mermaid from './Mermaid.vue';
import './style.css';

export default {
  extends: Theme,
  enhanceApp: ({ app }) => app.component('Mermaid', Mermaid),
};
