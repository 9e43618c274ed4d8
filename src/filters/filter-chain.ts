/** Runs the filter chain of an API in order: no closure per request, synchronous unless a filter returns a promise. */
import type { Filter, FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { Outcome } from '../proxy/exchange/outcome.ts'
import type { TraceContext } from '../proxy/exchange/trace-context.ts'
import { tracer } from '../protocol/tracer.ts'

/** A filter that describes in one line what it does for its API. */
export interface DescribedFilter extends Filter {
  readonly about: string
}

export function runFilters(filters: readonly Filter[], exchange: Exchange, from = 0): FilterResult {
  for (let i = from; i < filters.length; i++) {
    const verdict = filters[i]!.request(exchange)
    if (tracer !== null) trace(exchange, filters[i]!, verdict)
    if (verdict === undefined) continue
    if (verdict instanceof Promise) return resume(verdict, filters, exchange, i)
    return verdict
  }
  return undefined
}

/** Like `runFilters`, and keeps the times of authentication and throttling. */
export function runTimedFilters(
  filters: readonly Filter[],
  exchange: Exchange,
  times: TraceContext,
  from = 0,
): FilterResult {
  for (let i = from; i < filters.length; i++) {
    const { name } = filters[i]!
    const isTimed = name === 'authentication' || name === 'throttling'
    if (isTimed) times.begin(name)
    const verdict = filters[i]!.request(exchange)
    if (tracer !== null) trace(exchange, filters[i]!, verdict)
    if (verdict instanceof Promise) {
      return verdict.then(outcome => {
        if (isTimed) times.end(name)
        if (tracer !== null) trace(exchange, filters[i]!, outcome)
        return outcome ?? runTimedFilters(filters, exchange, times, i + 1)
      })
    }
    if (isTimed) times.end(name)
    if (verdict !== undefined) return verdict
  }
  return undefined
}

async function resume(
  verdict: Promise<Outcome | undefined>,
  filters: readonly Filter[],
  exchange: Exchange,
  at: number,
): Promise<Outcome | undefined> {
  const outcome = await verdict
  if (tracer !== null) trace(exchange, filters[at]!, outcome)
  return outcome ?? runFilters(filters, exchange, at + 1)
}

function trace(exchange: Exchange, { name }: Filter, verdict: FilterResult): void {
  const result =
    verdict === undefined
      ? 'passes'
      : verdict instanceof Promise
        ? 'waits'
        : verdict.code === 0
          ? 'responds'
          : `refuses with ${verdict.code}`
  tracer?.note(exchange, `filter ${name}`, result)
}
