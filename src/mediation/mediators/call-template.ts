/**
 * `<call-template target="…">`: runs a sequence template with values for its parameters, and then continues, unless the
 * template has ended the message. `onError` names the sequence for what fails in the template and is not handled there.
 */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { mostOf } from '../flow-plan.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { templateKey } from '../sequence-templates.ts'
import type { Deferred } from '../template-frame.ts'
import { textOf, type Value } from '../value.ts'

interface GivenParameter {
  readonly name: string
  readonly value: Expression
  /** In double braces: the template evaluates it where it reads it. */
  readonly isDeferred: boolean
}

interface CallTemplateSettings {
  readonly target: string
  readonly parameters: readonly GivenParameter[]
  /** '' for none. */
  readonly onError: string
}

const NOT_MEDIATED = 102544
const DOUBLE_BRACES = /^\{\{([\s\S]*)\}\}$/

export const callTemplate = mediator<CallTemplateSettings>({
  name: 'call-template',
  attributes: ['target', 'onError'],
  elements: ['with-param'],

  parse(element, parser) {
    const target = parser.required(element, 'target')
    const parameters = element.children.map(child => parseParameter(child, parser))
    const names = element.children.map(child => child.attribute('name'))
    names.forEach((name, at) => {
      if (name !== '' && names.indexOf(name) < at)
        parser.error(element.children[at]!, 'name', 'is repeated', 'remove one', name)
    })
    const onError = element.attribute('onError')
    if (onError !== '') parser.calls.add(onError)
    if (target === undefined || parameters.includes(undefined)) return undefined
    parser.callsTemplate(element, target, names)
    return { target, parameters: parameters as readonly GivenParameter[], onError }
  },

  needs({ target, parameters, onError }, context) {
    const ofValues = parameters.map(({ value }) => context.expression(value))
    return mostOf(context.sequence(templateKey(target)), context.sequence(onError), ...ofValues)
  },

  compile({ target, parameters, onError }, context) {
    const key = templateKey(target)
    const given = parameters.map(({ name, value, isDeferred }) => {
      return { name, isDeferred, evaluate: context.compileExpression(value) }
    })
    return message => {
      const { frame } = message
      const declared = context.parametersOf(key)
      const values = new Map<string, Value>(declared.map(({ name, value }) => [name, value]))
      const deferred = new Map<string, Deferred>()
      for (const { name, isDeferred, evaluate } of given) {
        // As on the reference platform a parameter that the template lacks has no effect.
        if (!values.has(name)) continue
        if (isDeferred) deferred.set(name, { evaluate, frame })
        else {
          const { uses } = message.secrets
          const value = evaluate(message)
          message.secrets.computed(value, uses)
          if (value !== '') values.set(name, value)
        }
      }
      const missing = declared.find(({ name, isMandatory }) => {
        return isMandatory && !deferred.has(name) && textOf(values.get(name)) === ''
      })
      if (missing !== undefined) {
        const cause = `the mandatory parameter ${missing.name} of the template ${target} is empty`
        throw new MediationFault({ code: NOT_MEDIATED, message: 'Mediation failed', cause })
      }
      message.frame = { values, deferred }
      const leave = (goesOn: boolean): boolean => {
        message.frame = frame
        return goesOn
      }
      const fail = (error: unknown): never => {
        message.frame = frame
        throw error
      }
      try {
        const goesOn = context.runSequence(key, message, onError)
        return goesOn instanceof Promise ? goesOn.then(leave, fail) : leave(goesOn)
      } catch (error) {
        return fail(error)
      }
    }
  },
})

function parseParameter(element: XmlElement, parser: SequenceParser): GivenParameter | undefined {
  parser.checkAttributes(element, ['name', 'value'])
  parser.checkElements(element, [])
  const name = parser.required(element, 'name')
  const text = element.attribute('value')
  if (!element.has('value')) return parser.error(element, 'value', 'is missing', 'add it')
  const deferred = DOUBLE_BRACES.exec(text)?.[1]
  const empty: Expression = { kind: 'literal', value: '' }
  const value =
    deferred !== undefined
      ? parser.expressionIn(element, deferred, 'value')
      : text === ''
        ? empty
        : parser.textOrExpression(element, 'value')
  return name === undefined || value === undefined ? undefined : { name, value, isDeferred: deferred !== undefined }
}
