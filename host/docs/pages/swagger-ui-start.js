const ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  // The validator is on another host.
  validatorUrl: null,
  plugins: [{ wrapComponents: { oauth2: inForm, InitializedInput: withoutAutocomplete, License: absent } }],
  requestInterceptor,
});

ui.initOAuth({ clientId: 'swagger-ui', scopes: 'users.read users.write' });

/** Few issuers allow this header to other origins. */
function requestInterceptor(request) {
  delete request.headers['X-Requested-With'];
  return request;
}

/** Browsers complain of a password outside a form; and in a form Enter authorizes. */
function inForm(Component, { React }) {
  const onSubmit = (event) => event.preventDefault();
  return (props) => React.createElement('form', { onSubmit }, React.createElement(Component, props));
}

function withoutAutocomplete(Component, { React }) {
  return (props) => React.createElement(Component, { autoComplete: 'off', ...props });
}

/** It would link to another host. */
function absent() {
  return () => null;
}
