/**
 * Handlers of the operator: the last filter of every API, and their part in responses. A handler that fails or hangs
 * costs its own exchange an answer; in the phases `response` and `end` a failure is only logged.
 */
import { listNamed } from '../http1/field-kinds.ts'
import type { Head } from '../http1/head.ts'
import { arena } from '../http1/llhttp.ts'
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { ExchangeHandlers } from '../proxy/exchange/exchange-handlers.ts'
import { fieldsIn, HeadEdit } from '../proxy/exchange/head-edit.ts'
import { type Outcome, refusal } from '../proxy/exchange/outcome.ts'
import { ThreadFailure } from '../runtime/isolated-threads.ts'
import type { ModuleStates } from '../runtime/module-states.ts'
import type { DescribedFilter } from './filter-chain.ts'
import { openView } from './exchange-view.ts'
import type {
  ExchangeView,
  FieldEdit,
  HandlerModule,
  HandlerReply,
  HandlerTask,
  ViewFacts,
} from './handler-interface.ts'

export interface LoadedHandler {
  readonly name: string
  readonly path: string
  readonly phases: readonly Phase[]
  /** Null: the handler runs on threads alone. */
  readonly module: HandlerModule | null
}
type Phase = ExchangeView['phase']

interface HandlerServices {
  readonly report: (level: 'error', event: string, fields: Record<string, string | number>) => void
  /** Milliseconds that only rise. */
  readonly nowMs: () => number
  /** Of the handlers, by their places; and the place of this reactor there. */
  readonly states: ModuleStates
  readonly reactor: number
  /** Runs a phase on a thread. Rejects with ThreadFailure. */
  readonly run: (task: HandlerTask) => Promise<HandlerReply>
}

const FAILED = refusal(102590)
const REFUSED = refusal(102593)
const THREAD_FAILURES: Readonly<Record<ThreadFailure['reason'], Outcome>> = {
  late: refusal(102591),
  memory: FAILED,
  died: FAILED,
  'queue-full': refusal(102592),
}
/** Between two log lines about the same handler, in milliseconds. */
const LOG_INTERVAL_MS = 10_000
const NO_CHANGES: readonly FieldEdit[] = []

export class HandlersFilter implements DescribedFilter {
  readonly name = 'handlers'
  readonly about: string
  readonly #handlers: readonly LoadedHandler[]
  readonly #services: HandlerServices
  /** By name: when the last line was logged, and failures since. */
  readonly #failures = new Map<string, { loggedMs: number; since: number }>()

  constructor(handlers: readonly LoadedHandler[], services: HandlerServices) {
    this.#handlers = handlers
    this.#services = services
    this.about = handlers.map(({ name }) => name).join(', ')
  }

  request(exchange: Exchange): FilterResult {
    const run = new HandledExchange(exchange, this)
    exchange.handlers = run
    return this.#requestFrom(0, exchange, run)
  }

  /** The head is there until a handler waits; then its fields have been copied. */
  #requestFrom(from: number, exchange: Exchange, run: HandledExchange): FilterResult {
    for (let at = from; at < this.#handlers.length; at++) {
      const handler = this.#handlers[at]!
      const module = this.#moduleHere(at)
      const outcome = module === null ? this.#requestThere(handler, exchange, run) : this.#requestHere(at, module, run)
      if (outcome instanceof Promise) {
        return outcome.then(outcome => outcome ?? this.#requestFrom(at + 1, exchange, run))
      }
      if (outcome !== undefined) return outcome
    }
    return undefined
  }

  /** The module that runs on this thread; null: the handler runs on others. */
  #moduleHere(at: number): HandlerModule | null {
    const { module } = this.#handlers[at]!
    return module === null || this.#services.states.isIsolated(at) ? null : module
  }

  #requestHere(at: number, module: HandlerModule, run: HandledExchange): Outcome | undefined {
    if (module.request === undefined) return undefined
    const { states, reactor } = this.#services
    const { name } = this.#handlers[at]!
    const { view, changes, close } = openView(run.facts('request', 0), field => run.requestField(field), true)
    states.enter(reactor, at)
    try {
      const result = module.request(view)
      if (result instanceof Promise) return this.#waitsInVain(name, 'request', result)
      run.changeRequest(changes)
      return result === false ? REFUSED : undefined
    } catch (error) {
      this.failed(name, 'request', causeOf(error))
      return FAILED
    } finally {
      states.leave(reactor)
      close()
    }
  }

  #requestThere({ name, path, phases }: LoadedHandler, exchange: Exchange, run: HandledExchange): FilterResult {
    // The next handler may wait too, and the head is gone by then.
    run.copyFields()
    if (!phases.includes('request')) return undefined
    const task = { path, facts: run.facts('request', 0), fields: run.fields }
    return this.#services.run(task).then(
      reply => this.#replied(name, reply, run),
      (error: ThreadFailure) => {
        this.failed(name, 'request', error.message)
        exchange.handlers = null
        return error instanceof ThreadFailure ? THREAD_FAILURES[error.reason] : FAILED
      },
    )
  }

  #replied(name: string, reply: HandlerReply, run: HandledExchange): Outcome | undefined {
    if (reply.kind === 'failed') {
      this.failed(name, 'request', reply.cause)
      return FAILED
    }
    try {
      run.changeRequest(reply.changes)
    } catch (error) {
      this.failed(name, 'request', causeOf(error))
      return FAILED
    }
    Object.assign(run.attributes, reply.attributes)
    return reply.goesOn ? undefined : REFUSED
  }

  /** Runs a later phase of all handlers in order; returns the changes of fields, none in the phase `end`. */
  later(phase: 'response' | 'end', run: HandledExchange, status: number, field: Field): readonly FieldEdit[] {
    const { states, reactor } = this.#services
    let all = NO_CHANGES
    for (const [at, handler] of this.#handlers.entries()) {
      const { name, phases } = handler
      if (!phases.includes(phase)) continue
      const module = this.#moduleHere(at)
      if (module === null) {
        this.#tell(handler, run.facts(phase, status))
        continue
      }
      const { view, changes, close } = openView(run.facts(phase, status), fieldAfter(all, field), phase === 'response')
      states.enter(reactor, at)
      try {
        const result = module[phase]!(view)
        if (result instanceof Promise) this.#waitsInVain(name, phase, result)
        else if (changes.length > 0) {
          // Throws where they do not fit.
          new HeadEdit([...all, ...changes], {})
          all = [...all, ...changes]
        }
      } catch (error) {
        this.failed(name, phase, causeOf(error))
      }
      states.leave(reactor)
      close()
    }
    return all
  }

  #tell({ name, path }: LoadedHandler, facts: ViewFacts): void {
    this.#services.run({ path, facts, fields: [] }).then(
      reply => {
        if (reply.kind === 'failed') this.failed(name, facts.phase, reply.cause)
      },
      (error: Error) => this.failed(name, facts.phase, error.message),
    )
  }

  /** A synchronous handler has returned a promise, for which nobody waits. */
  #waitsInVain(name: string, phase: Phase, result: Promise<unknown>): Outcome {
    // A rejection that nobody handles would end the thread.
    result.catch(() => undefined)
    this.failed(name, phase, 'a synchronous handler has returned a promise')
    return FAILED
  }

  /** A handler on this thread has left an error behind, of which no call of it hears. `name`: '' if unknown. */
  failedDetached(name: string, error: unknown): void {
    this.failed(name, 'detached', causeOf(error))
  }

  failed(name: string, phase: string, cause: string): void {
    const now = this.#services.nowMs()
    const known = this.#failures.get(name)
    if (known !== undefined && now - known.loggedMs < LOG_INTERVAL_MS) {
      known.since++
      return
    }
    this.#failures.set(name, { loggedMs: now, since: 0 })
    const fields = { HANDLER: name, PHASE: phase, CAUSE_OF_ERROR: cause }
    this.#services.report('error', 'handler failed', { ...fields, NOT_LOGGED_BEFORE: known?.since ?? 0 })
  }
}

type Field = (name: string) => string | undefined

function fieldAfter(changes: readonly FieldEdit[], field: Field): Field {
  return name => {
    const changed = changes.findLast(each => each.name.toLowerCase() === name)
    return changed === undefined ? field(name) : changed.value
  }
}

/** Class of the error and where it was thrown: its message may hold text of a client. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'a value was thrown that is no error'
  const frame = /^ +at (.*)$/m.exec(error.stack ?? '')
  return frame === null ? error.name : `${error.name} at ${frame[1]}`
}

/** The handlers in one exchange. */
class HandledExchange implements ExchangeHandlers {
  readonly attributes: Record<string, unknown> = {}
  fields: HandlerTask['fields'] = []
  readonly #exchange: Exchange
  readonly #filter: HandlersFilter
  #changes = NO_CHANGES

  constructor(exchange: Exchange, filter: HandlersFilter) {
    this.#exchange = exchange
    this.#filter = filter
  }

  facts(phase: Phase, status: number): ViewFacts {
    const { method, canonicalTarget, pathAt, api, resource, clientAddress, correlationId, caller } = this.#exchange
    const { startedMs, doneMs } = this.#exchange
    return {
      ...{ phase, method, status, correlationId },
      target: canonicalTarget.slice(pathAt),
      api: { name: api!.name, version: api!.version, context: api!.path },
      resource: resource === null ? '' : resource.template,
      client: clientAddress,
      caller:
        caller === null
          ? null
          : { user: caller.user, application: caller.application?.name ?? '', method: caller.method },
      latencyMs: Math.max(0, (doneMs || performance.now()) - startedMs),
      attributes: this.attributes,
    }
  }

  requestField(name: string): string | undefined {
    const changed = this.#changes.findLast(each => each.name.toLowerCase() === name)
    if (changed !== undefined) return changed.value
    if (this.fields.length > 0) return this.fields.find(([each]) => each.toLowerCase() === name)?.[1]
    return listNamed(arena.bytes, this.#exchange.head!, name)
  }

  /** Copies the fields of the request, while the head is there. */
  copyFields(): void {
    const { head } = this.#exchange
    if (this.fields.length > 0 || head === null) return
    const { bytes } = arena
    this.fields = Array.from({ length: head.count }, (_, field) => {
      const at = head.nameAt(field)
      return [bytes.latin1Slice(at, at + head.nameLength(field)), head.value(bytes, field)] as const
    })
  }

  /** Throws where the changes do not fit into a head. */
  changeRequest(changes: readonly FieldEdit[]): void {
    if (changes.length === 0) return
    const all = [...this.#changes, ...changes]
    new HeadEdit(all, {})
    this.#changes = all
    this.fields = applied(this.fields, changes)
  }

  requestEdit(edit: HeadEdit | null): HeadEdit | null {
    return this.#extended('request', edit, this.#changes)
  }

  responseEdit(head: Head, edit: HeadEdit | null): HeadEdit | null {
    const status = edit === null || edit.status === 0 ? head.status : edit.status
    return this.#extended(
      'response',
      edit,
      this.#filter.later('response', this, status, name => listNamed(arena.bytes, head, name)),
    )
  }

  localLines(status: number, lines: string): string {
    const given = fieldsIn(lines)
    const field: Field = name => given.find(([each]) => each.toLowerCase() === name)?.[1]
    const changes = this.#filter.later('response', this, status, field)
    if (changes.length === 0) return lines
    const edit = new HeadEdit(changes, {})
    const kept = given.filter(([name]) => !edit.removed.names.includes(name.toLowerCase()))
    return kept.map(([name, value]) => `${name}: ${value}\r\n`).join('') + Buffer.from(edit.lines).toString('latin1')
  }

  ended(): void {
    this.#filter.later('end', this, this.#exchange.status, () => undefined)
  }

  #extended(phase: Phase, edit: HeadEdit | null, changes: readonly FieldEdit[]): HeadEdit | null {
    if (changes.length === 0) return edit
    try {
      return edit === null ? new HeadEdit(changes, {}) : edit.extended(changes)
    } catch (error) {
      this.#filter.failed('all', phase, causeOf(error))
      return edit
    }
  }
}

function applied(fields: HandlerTask['fields'], changes: readonly FieldEdit[]): HandlerTask['fields'] {
  if (fields.length === 0) return fields
  const names = changes.map(({ name }) => name.toLowerCase())
  const last = new Map(changes.map(change => [change.name.toLowerCase(), change]))
  const set = [...last.values()].flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const]))
  return [...fields.filter(([name]) => !names.includes(name.toLowerCase())), ...set]
}
