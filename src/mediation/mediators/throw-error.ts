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
/** Property with the status of the response, as on the reference platform. */
const STATUS = 'CUSTOM_HTTP_SC'
const STATUSES = /^[2-5]\d\d$/

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
      const parts = { message: text, detail: type, type, cause: `<throwError> of type ${type}` }
      const status = textOf(message.get('default', STATUS))
      throw new MediationFault(STATUSES.test(status) ? { ...parts, status: Number(status) } : parts)
    }
  },
})
