/** `<log>`: writes parts of the message to the log; values of secret fields and members are masked. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { MASK, redactMembers } from '../../observe/redact.ts'
import { mostOf } from '../flow-plan.ts'
import { textOfPayload } from '../json-xml.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { markupOf, textOf, type Value } from '../value.ts'

const LEVELS = ['simple', 'full', 'headers', 'custom'] as const
const CATEGORIES = ['INFO', 'DEBUG', 'TRACE', 'WARN', 'ERROR', 'FATAL'] as const
/** Levels of the gateway's log. */
const CATEGORY_LEVELS = {
  INFO: 'info',
  DEBUG: 'debug',
  TRACE: 'debug',
  WARN: 'warn',
  ERROR: 'error',
  FATAL: 'error',
} as const
const TEXT_MAX = 2048
/** Characters of a part in which secret members are sought: a secret may stand at the end of the text. */
const SOURCE_MAX = 4 * TEXT_MAX

interface LogSettings {
  readonly level: (typeof LEVELS)[number]
  readonly category: (typeof CATEGORIES)[number]
  readonly separator: string
  /** Parts beside those of the level. */
  readonly hasPayload: boolean
  readonly hasId: boolean
  /** Template in the first place of the text; null for none. */
  readonly message: Expression | null
  readonly properties: readonly { readonly name: string; readonly value: Expression }[]
}

export const log = mediator<LogSettings>({
  name: 'log',
  attributes: ['level', 'category', 'separator', 'logFullPayload', 'logMessageID'],
  elements: ['property', 'message'],

  parse(element, parser) {
    const template = parser.only(element, 'message')
    // Beside a message of its own, the text has the destination only if a level asks for it.
    const level = parser.choice(element, 'level', LEVELS, template === undefined ? 'simple' : 'custom')
    const message = template === undefined ? null : readMessage(template, parser)
    const category = parser.choice(element, 'category', CATEGORIES, 'INFO')
    const given = element.children.filter(({ name }) => name === 'property')
    const properties = given.flatMap(child => {
      parser.checkAttributes(child, ['name', 'value', 'expression'])
      parser.checkElements(child, [])
      const name = parser.required(child, 'name')
      const value = parser.valueOrExpression(child)
      return name === undefined || value === undefined ? [] : [{ name, value }]
    })
    const [payload, hasId] = [parser.flag(element, 'logFullPayload'), parser.flag(element, 'logMessageID')]
    if (level === undefined || category === undefined || message === undefined) return undefined
    if (payload === undefined || hasId === undefined) return undefined
    const hasPayload = payload || level === 'full'
    const separator = element.has('separator') ? element.attribute('separator') : ', '
    return { level, category, separator, hasPayload, hasId, message, properties }
  },

  needs({ hasPayload, message, properties }, context) {
    if (hasPayload) return 'worker'
    const values = [...(message === null ? [] : [message]), ...properties.map(({ value }) => value)]
    return mostOf('heads', ...values.map(value => context.expression(value)))
  },

  compile({ level, category, separator, hasPayload, hasId, message: template, properties }, context) {
    const evaluateTemplate = template === null ? null : context.compileExpression(template)
    const evaluates = properties.map(({ name, value }) => ({ name, evaluate: context.compileExpression(value) }))
    return message => {
      message.dependsOnRequest = true
      const parts = level === 'simple' || level === 'full' ? [`To: ${redactMembers(message.to)}`] : []
      if (hasId) parts.push(`MessageID: ${textOf(message.get('default', 'MessageID'))}`)
      if (level === 'headers') parts.push(...fieldsOf(message))
      if (evaluateTemplate !== null) parts.push(maskedText(message, () => evaluateTemplate(message)))
      for (const { name, evaluate } of evaluates)
        parts.push(`${name} = ${maskedText(message, () => evaluate(message))}`)
      if (hasPayload) parts.push(`Payload: ${withoutSecrets(message.secrets.mask(payloadText(message)))}`)
      const text = parts.join(separator).slice(0, TEXT_MAX)
      context.log(CATEGORY_LEVELS[category], 'sequence log', { SEQUENCE: context.location, MESSAGE: text })
      return true
    }
  },
})

function readMessage(template: XmlElement, parser: SequenceParser): Expression | undefined {
  parser.checkAttributes(template, [])
  parser.checkElements(template, [])
  return parser.template(template, template.text)
}

/** A value computed from a secret is masked whole, as it may be encoded, unless a copy of the secret is seen in it. */
function maskedText({ secrets }: Message, evaluate: () => Value): string {
  const { reads, uses } = secrets
  const text = markupOf(evaluate())
  if (secrets.reads !== reads) return MASK
  const masked = secrets.mask(text)
  return secrets.uses !== uses && masked === text ? MASK : withoutSecrets(masked)
}

/** Masks the secret members of a payload, whoever has sent it: passwords and tokens of `/token` pass here too. */
function withoutSecrets(text: string): string {
  return redactMembers(text.slice(0, SOURCE_MAX))
}

/** Fields of the message as it would go on. */
function fieldsOf(message: Message): string[] {
  const fields = [...message.keptFields(), ...message.fields()]
  return fields.map(([name, value]) => `${name}: ${message.secrets.maskField(name, textOf(value))}`)
}

function payloadText({ payload }: Message): string {
  return payload === null ? '' : textOfPayload(payload)
}
