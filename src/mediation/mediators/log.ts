/** `<log>`: a line of the log, with what is asked for of the message. Values of secret fields are never in it. */
import type { Expression } from '../expression.ts'
import { MASK } from '../../observe/redact.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { markupOf, textOf } from '../value.ts'
import { writeXml } from '../xml-tree.ts'

const LEVELS = ['simple', 'full', 'headers', 'custom'] as const
const CATEGORIES = ['INFO', 'DEBUG', 'TRACE', 'WARN', 'ERROR', 'FATAL'] as const
/** As the gateway's log has levels. */
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
  readonly properties: readonly { readonly name: string; readonly from: Expression }[]
}

export const log = mediator<LogSettings>({
  name: 'log',
  attributes: ['level', 'category', 'separator'],
  elements: ['property'],

  read(element, reading) {
    const level = reading.choice(element, 'level', LEVELS, 'simple')
    const category = reading.choice(element, 'category', CATEGORIES, 'INFO')
    const properties = element.children.flatMap(child => {
      reading.attributes(child, ['name', 'value', 'expression'])
      reading.elements(child, [])
      const name = reading.required(child, 'name')
      const from = reading.valueOrExpression(child)
      return name === undefined || from === undefined ? [] : [{ name, from }]
    })
    if (level === undefined || category === undefined) return undefined
    const separator = element.has('separator') ? element.attribute('separator') : ', '
    return { level, category, separator, properties }
  },

  compile({ level, category, separator, properties }, compiling) {
    const evaluates = properties.map(({ name, from }) => ({ name, evaluate: compiling.expression(from) }))
    return message => {
      const parts = level === 'simple' || level === 'full' ? [`To: ${message.to}`] : []
      if (level === 'headers') parts.push(...fieldsOf(message))
      for (const { name, evaluate } of evaluates) {
        const before = message.secretsRead
        const text = markupOf(evaluate(message))
        // What was made of a secret is one, encoded or not.
        parts.push(`${name} = ${message.secretsRead === before ? message.withoutSecrets(text) : MASK}`)
      }
      if (level === 'full') parts.push(`Payload: ${message.withoutSecrets(payloadText(message))}`)
      const text = parts.join(separator).slice(0, TEXT_MAX)
      compiling.log(CATEGORY_LEVELS[category], 'log of a sequence', { SEQUENCE: compiling.where, MESSAGE: text })
      return true
    }
  },
})

/** Those of the answer so far. */
function fieldsOf(message: Message): string[] {
  return Array.from(message.fields(), ([name, value]) => `${name}: ${message.shown(name, textOf(value))}`)
}

function payloadText({ payload }: Message): string {
  if (payload === null) return ''
  return payload.kind === 'xml' ? writeXml(payload.root) : payload.text
}
