/** `<log>`: writes parts of the message to the log; values of secret fields are masked. */
import type { Expression } from '../expression.ts'
import { MASK } from '../../observe/redact.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { markupOf, textOf } from '../value.ts'
import { writeXml } from '../xml-tree.ts'

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

interface LogSettings {
  readonly level: (typeof LEVELS)[number]
  readonly category: (typeof CATEGORIES)[number]
  readonly separator: string
  readonly properties: readonly { readonly name: string; readonly value: Expression }[]
}

export const log = mediator<LogSettings>({
  name: 'log',
  attributes: ['level', 'category', 'separator'],
  elements: ['property'],

  parse(element, parser) {
    const level = parser.choice(element, 'level', LEVELS, 'simple')
    const category = parser.choice(element, 'category', CATEGORIES, 'INFO')
    const properties = element.children.flatMap(child => {
      parser.checkAttributes(child, ['name', 'value', 'expression'])
      parser.checkElements(child, [])
      const name = parser.required(child, 'name')
      const value = parser.valueOrExpression(child)
      return name === undefined || value === undefined ? [] : [{ name, value }]
    })
    if (level === undefined || category === undefined) return undefined
    const separator = element.has('separator') ? element.attribute('separator') : ', '
    return { level, category, separator, properties }
  },

  compile({ level, category, separator, properties }, context) {
    const evaluates = properties.map(({ name, value }) => ({ name, evaluate: context.compileExpression(value) }))
    return message => {
      message.dependsOnRequest = true
      const parts = level === 'simple' || level === 'full' ? [`To: ${message.to}`] : []
      if (level === 'headers') parts.push(...fieldsOf(message))
      for (const { name, evaluate } of evaluates) {
        const secretsBefore = message.secretsRead
        const text = markupOf(evaluate(message))
        // A value computed from a secret is masked whole: it may be encoded.
        parts.push(`${name} = ${message.secretsRead === secretsBefore ? message.maskSecrets(text) : MASK}`)
      }
      if (level === 'full') parts.push(`Payload: ${message.maskSecrets(payloadText(message))}`)
      const text = parts.join(separator).slice(0, TEXT_MAX)
      context.log(CATEGORY_LEVELS[category], 'sequence log', { SEQUENCE: context.location, MESSAGE: text })
      return true
    }
  },
})

/** Response fields set so far. */
function fieldsOf(message: Message): string[] {
  return Array.from(message.fields(), ([name, value]) => `${name}: ${message.maskField(name, textOf(value))}`)
}

function payloadText({ payload }: Message): string {
  if (payload === null) return ''
  return payload.kind === 'xml' ? writeXml(payload.root) : payload.text
}
