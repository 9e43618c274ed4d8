/** Runs the chain of an API: phases in order, no closure per request, synchronous as long as no handler has to wait. */
import type { Handler, Verdict } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'

export function runRequest(handlers: readonly Handler[], exchange: Exchange, from = 0): Verdict {
  for (let i = from; i < handlers.length; i++) {
    const verdict = handlers[i]!.request(exchange)
    if (verdict === undefined) continue
    if (verdict instanceof Promise) return verdict.then(outcome => outcome ?? runRequest(handlers, exchange, i + 1))
    return verdict
  }
  return undefined
}
