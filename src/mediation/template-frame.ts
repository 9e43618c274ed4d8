/** Parameters of a call of a sequence template, which expressions within the template read as `$func:name`. */
import { cloneable } from './formats/json-text.ts'
import type { Message } from './message.ts'
import type { Value } from './value.ts'
import type { MessageState } from './worker-task.ts'

/** A parameter in double braces: evaluated with each read, on the message that reads, with the caller's parameters. */
export interface Deferred {
  readonly evaluate: (message: Message) => Value
  /** Parameters of the caller; null: the caller is no template. */
  readonly frame: TemplateFrame | null
}

/** Parameters of one call. Copies of a message share a frame, because it never changes. */
export interface TemplateFrame {
  readonly values: ReadonlyMap<string, Value>
  readonly deferred: ReadonlyMap<string, Deferred>
}

/** Value of a parameter; undefined for none of that name, and outside of templates. */
export function parameterOf(message: Message, name: string): Value | undefined {
  const { frame } = message
  const deferred = frame?.deferred.get(name)
  if (deferred === undefined) return frame?.values.get(name)
  message.frame = deferred.frame
  try {
    return deferred.evaluate(message)
  } finally {
    message.frame = frame
  }
}

/** The parameters as plain data, for another thread: what is deferred is evaluated. Undefined outside of templates. */
export function settledParameters(message: Message): MessageState['parameters'] {
  const { frame } = message
  if (frame === null) return undefined
  return [...frame.values.keys()].map(name => [name, cloneable(parameterOf(message, name) ?? '')] as const)
}
