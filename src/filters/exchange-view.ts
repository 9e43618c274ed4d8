/** Views of exchanges for handlers: facts, fields that are read and changed, and causes of failures. */
import { isToken } from '../http1/token.ts'
import { isFieldText } from '../http1/writer.ts'
import type { ExchangeView, FieldEdit, HandlerTask, ViewFacts } from './handler-interface.ts'

/** Changes of one handler in one phase. */
const CHANGES_MAX = 100
/** Fields of framing and of the connection, which the gateway alone sets. */
const RESERVED = [
  ...['connection', 'content-length', 'date', 'host', 'keep-alive', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade'],
]

interface OpenView {
  readonly view: ExchangeView
  readonly changes: FieldEdit[]
  /** The view cannot be used any more. */
  close(): void
}

/** `field`: a field of the message by its name in lower case. `isEditable`: the head is still to be sent. */
export function openView(facts: ViewFacts, field: (name: string) => string | undefined, isEditable: boolean): OpenView {
  const changes: FieldEdit[] = []
  let state: 'editable' | 'readable' | 'closed' = isEditable ? 'editable' : 'readable'
  const change = (name: string, value: string | undefined): void => {
    if (state !== 'editable') throw new TypeError('the head is sent, or the handler was told and not asked')
    if (!isToken(name) || RESERVED.includes(name.toLowerCase()))
      throw new TypeError('the gateway alone sets this field')
    if (value !== undefined && !isFieldText(value)) throw new TypeError('a field cannot have this value')
    if (changes.length >= CHANGES_MAX) throw new RangeError(`more than ${CHANGES_MAX} changes`)
    changes.push({ name, value })
  }
  const view: ExchangeView = {
    ...facts,
    field(name) {
      if (state === 'closed') throw new TypeError('the phase is over')
      const lower = name.toLowerCase()
      const changed = changes.findLast(each => each.name.toLowerCase() === lower)
      return changed === undefined ? field(lower) : changed.value
    },
    setField: (name, value) => change(name, String(value)),
    removeField: name => change(name, undefined),
  }
  return {
    view,
    changes,
    close() {
      state = 'closed'
    },
  }
}

/** The value of a field by its name in lower case, of all its lines; undefined for none. */
export function fieldNamed(fields: HandlerTask['fields'], name: string): string | undefined {
  const values = fields.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value)
  return values.length === 0 ? undefined : values.join(', ')
}

/** Class of the error and where it was thrown: its message may hold text of a client. Never throws. */
export function causeOf(error: unknown): string {
  try {
    return readCause(error)
  } catch {
    // Members of an error may throw too, or be no texts.
    return 'an error was thrown that cannot be read'
  }
}

function readCause(error: unknown): string {
  if (!(error instanceof Error)) return 'a value was thrown that is no error'
  if (error.name === 'ModuleError') return error.message
  const frame = /^ +at (.*)$/m.exec(error.stack ?? '')
  return frame === null ? `${error.name}` : `${error.name} at ${frame[1]}`
}
