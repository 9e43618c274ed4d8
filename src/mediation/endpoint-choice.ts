/** The endpoint of `<send>` and `<call>`, which an expression may find among those of files. */
import type { SequenceEndpoint } from './endpoint-plan.ts'
import type { CompileContext } from './mediator.ts'
import { MediationFault } from './mediation-fault.ts'
import type { Message } from './message.ts'
import { textOf } from './value.ts'

const INVALID_DESTINATION = 102551
const CAUSE = 'there is no endpoint of the name that key-expression finds'

/** The closure throws MediationFault where there is no endpoint of the name. */
export function compileEndpointChoice(
  endpoint: SequenceEndpoint,
  context: CompileContext,
): (message: Message) => Pick<SequenceEndpoint, 'name' | 'form'> {
  const { key, known = {} } = endpoint
  if (key === undefined) return () => endpoint
  const evaluate = context.compileExpression(key)
  return message => {
    const name = textOf(evaluate(message))
    if (Object.hasOwn(known, name)) return { name, form: known[name]! }
    throw new MediationFault({ code: INVALID_DESTINATION, message: 'Invalid destination', cause: CAUSE })
  }
}
