const fontFamily = 'system-ui, sans-serif';

const options = {
  // The search would need a worker.
  disableSearch: true,
  hideDownloadButtons: true,
  theme: { typography: { fontFamily, headings: { fontFamily } } },
};

Redoc.init('/openapi.json', options, document.getElementById('api'));
