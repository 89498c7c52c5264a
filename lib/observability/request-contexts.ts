import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, type ContextManager, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { currentRequest } from '../http/request-scope.ts';

/**
 * OpenTelemetry's active context, read from the request's scope. A request has one AsyncLocalStorage, traced or not,
 * and a context only if something reads it. The SDK's own manager has a second storage, of which every `run` copies all
 * entries, and a context for each span.
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

/** An entered context, and the request that entered it. A request that is served within it has a context of its own. */
type Entered = { readonly context: Context; readonly request: ReturnType<typeof currentRequest> };
