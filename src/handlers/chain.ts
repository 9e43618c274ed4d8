/** Runs the chain of an API: phases in order, no closure per request, synchronous as long as no handler has to wait. */
import type { Handler, Verdict } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Outcome } from '../exchange/outcome.ts'
import { tracer } from '../protocol/tracer.ts'

/** A handler that says in one line what it does for its API. */
export interface ExplainedHandler extends Handler {
  readonly about: string
}

export function runRequest(handlers: readonly Handler[], exchange: Exchange, from = 0): Verdict {
  for (let i = from; i < handlers.length; i++) {
    const verdict = handlers[i]!.request(exchange)
    if (tracer !== null) note(exchange, handlers[i]!, verdict)
    if (verdict === undefined) continue
    if (verdict instanceof Promise) return waitFor(verdict, handlers, exchange, i)
    return verdict
  }
  return undefined
}

async function waitFor(
  verdict: Promise<Outcome | undefined>,
  handlers: readonly Handler[],
  exchange: Exchange,
  at: number,
): Promise<Outcome | undefined> {
  const outcome = await verdict
  if (tracer !== null) note(exchange, handlers[at]!, outcome)
  return outcome ?? runRequest(handlers, exchange, at + 1)
}

function note(exchange: Exchange, { name }: Handler, verdict: Verdict): void {
  const said =
    verdict === undefined
      ? 'passes'
      : verdict instanceof Promise
        ? 'waits'
        : verdict.code === 0
          ? 'answers'
          : `refuses, ${verdict.code}`
  tracer?.noted(exchange, `handler ${name}`, said)
}
