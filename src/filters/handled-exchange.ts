/** The handlers of the operator in one exchange: their attributes, their changes of fields, their later phases. */
import { listNamed } from '../http1/field-kinds.ts'
import type { Head } from '../http1/head.ts'
import { arena } from '../http1/llhttp.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { ExchangeHandlers } from '../proxy/exchange/exchange-handlers.ts'
import { fieldsIn, HeadEdit } from '../proxy/exchange/head-edit.ts'
import { causeOf, fieldNamed } from './exchange-view.ts'
import type { ExchangeView, FieldEdit, HandlerTask, ViewFacts } from './handler-interface.ts'

type Fields = HandlerTask['fields']

/** Fields of a message. */
export interface MessageFields {
  /** Returns the value of a field by its name in lower case. */
  named(name: string): string | undefined
  all(): Fields
}

/** Runs phases of handlers. */
export interface HandlerPhases {
  /** Runs a later phase of all handlers in order; returns the changes of fields, none in the phase `end`. */
  later(phase: 'response' | 'end', run: HandledExchange, status: number, fields: MessageFields): readonly FieldEdit[]
  failed(name: string, phase: string, cause: string): void
}

export const NO_CHANGES: readonly FieldEdit[] = []
const NO_FIELDS: MessageFields = { named: () => undefined, all: () => [] }

/** The handlers in one exchange. */
export class HandledExchange implements ExchangeHandlers {
  readonly attributes: Record<string, unknown> = {}
  fields: Fields = []
  /** Settles once threads have run the phases that they were notified of; null: there are none. */
  notified: Promise<unknown> | null = null
  readonly #exchange: Exchange
  readonly #phases: HandlerPhases
  #changes = NO_CHANGES

  constructor(exchange: Exchange, phases: HandlerPhases) {
    this.#exchange = exchange
    this.#phases = phases
  }

  facts(phase: ExchangeView['phase'], status: number): ViewFacts {
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
    if (this.fields.length > 0) return fieldNamed(this.fields, name)
    return listNamed(arena.bytes, this.#exchange.head!, name)
  }

  /** Copies the fields of the request, while the head is there. */
  copyFields(): void {
    const { head } = this.#exchange
    if (this.fields.length > 0 || head === null) return
    this.fields = fieldsOf(head)
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
    const fields = { named: (name: string) => listNamed(arena.bytes, head, name), all: () => fieldsOf(head) }
    return this.#extended('response', edit, this.#phases.later('response', this, status, fields))
  }

  localLines(status: number, lines: string): string {
    const given = fieldsIn(lines)
    const fields = { named: (name: string) => fieldNamed(given, name), all: () => given }
    const changes = this.#phases.later('response', this, status, fields)
    if (changes.length === 0) return lines
    const edit = new HeadEdit(changes, {})
    const kept = given.filter(([name]) => !edit.removed.names.includes(name.toLowerCase()))
    return kept.map(([name, value]) => `${name}: ${value}\r\n`).join('') + Buffer.from(edit.lines).toString('latin1')
  }

  ended(): void {
    this.#phases.later('end', this, this.#exchange.status, NO_FIELDS)
  }

  #extended(phase: string, edit: HeadEdit | null, changes: readonly FieldEdit[]): HeadEdit | null {
    if (changes.length === 0) return edit
    try {
      return edit === null ? new HeadEdit(changes, {}) : edit.extended(changes)
    } catch (error) {
      this.#phases.failed('all', phase, causeOf(error))
      return edit
    }
  }
}

function fieldsOf(head: Head): Fields {
  const { bytes } = arena
  return Array.from({ length: head.count }, (_, field) => {
    const at = head.nameAt(field)
    return [bytes.latin1Slice(at, at + head.nameLength(field)), head.value(bytes, field)] as const
  })
}

/** Returns the fields after changes. */
export function applied(fields: Fields, changes: readonly FieldEdit[]): Fields {
  if (fields.length === 0 || changes.length === 0) return fields
  const names = changes.map(({ name }) => name.toLowerCase())
  const last = new Map(changes.map(change => [change.name.toLowerCase(), change]))
  const set = [...last.values()].flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const]))
  return [...fields.filter(([name]) => !names.includes(name.toLowerCase())), ...set]
}
