/** `<throwError type="…" errorMessage="…">`: raises a fault, which `onError` or the flow handles. */
import type { Expression } from '../expression.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import { textOf } from '../value.ts'

interface ThrowErrorSettings {
  /** Kind of the error, which becomes ERROR_CODE, and ERROR_DETAIL. */
  readonly type: string
  readonly message: Expression
}

/** Characters of the message. */
const MESSAGE_MAX = 1024

export const throwError = mediator<ThrowErrorSettings>({
  name: 'throwError',
  attributes: ['type', 'errorMessage'],
  elements: [],

  parse(element, parser) {
    const type = parser.required(element, 'type')
    const message = parser.textOrExpression(element, 'errorMessage')
    return type === undefined || message === undefined ? undefined : { type, message }
  },

  needs: ({ message }, context) => context.expression(message),

  compile({ type, message: source }, context) {
    const evaluate = context.compileExpression(source)
    return message => {
      const text = textOf(evaluate(message)).slice(0, MESSAGE_MAX)
      throw new MediationFault({ message: text, detail: type, type, cause: `<throwError> of type ${type}` })
    }
  },
})
