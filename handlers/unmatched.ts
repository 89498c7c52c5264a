import { unmatched } from '../lib/endpoint/unmatched.ts';
import { lambda } from '../lib/lambda.ts';
import { composeBase } from '../lib/service.ts';
import { endpoints } from './index.ts';

/** Serves requests for which API Gateway has no route: 404, and on a known path 405 or the response to OPTIONS. */
export const handler = /* @__PURE__ */ lambda(unmatched(endpoints.map(({ route }) => route)), composeBase);
