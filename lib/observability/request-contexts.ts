import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, type ContextManager, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { currentRequest } from '../request-scope.ts';

/**
 * OpenTelemetry's active context, read from the request's scope: a request has one AsyncLocalStorage whether it is traced
 * or not, and a context only where something asks for it. The SDK's own manager has a second storage, of which every
 * `run` copies all that is stored, and a context for each span.
 */
export function requestContexts(): ContextManager {
  const entered = new AsyncLocalStorage<Entered>();

  const contexts: ContextManager = {
    active() {
      const request = currentRequest();
      const within = entered.getStore();
      if (within && (within.request === request || !request?.traced)) return within.context;
      return request?.traced ? trace.setSpan(request.traced.caller, request.traced.span) : ROOT_CONTEXT;
    },
    with(context, run, self, ...given) {
      return entered.run({ context, request: currentRequest() }, () => run.apply(self as never, given));
    },
    bind(context, target) {
      if (typeof target !== 'function') return target;
      const bound = (...given: unknown[]) => contexts.with(context, () => target(...given));
      return bound as typeof target;
    },
    enable: () => contexts,
    disable: () => contexts,
  };
  return contexts;
}

/** A context that was entered, and the request that did so: one that is served within it has its own. */
type Entered = { readonly context: Context; readonly request: ReturnType<typeof currentRequest> };
