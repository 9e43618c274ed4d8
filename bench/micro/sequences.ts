/** Times the default sequences: from the properties of a fault to status, fields and body of a response. */
import { readFileSync } from 'node:fs'
import { Diagnostics } from '../../src/config/diagnostics.ts'
import { formatResponse } from '../../src/mediation/formatter.ts'
import { Message } from '../../src/mediation/message.ts'
import { parseSequence } from '../../src/mediation/sequence-parser.ts'
import { CompiledSequences } from '../../src/mediation/compiled-sequences.ts'
import { time } from './timing.ts'

const FOLDER = new URL('../../conf/synapse-configs/default/sequences/', import.meta.url)
const NAMES = ['fault', '_cors_request_handler_']
const FORMATS = ['application/json', 'application/xml', 'text/xml']

const diagnostics = new Diagnostics()
const parsed = NAMES.map(name =>
  parseSequence(name, name, readFileSync(new URL(`${name}.xml`, FOLDER), 'utf8'), diagnostics),
)
const plans = (await Promise.all(parsed)).filter(plan => plan !== undefined)
const report = (_: string, event: string) => {
  throw new Error(event)
}
const sequences = new CompiledSequences(plans, report)

for (const format of FORMATS) {
  time(`sequences: fault as ${format}`, () => {
    const message = new Message(() => undefined)
    message.set('default', 'ERROR_CODE', 101503)
    message.set('default', 'ERROR_MESSAGE', 'Error connecting to the backend')
    message.set('default', 'ERROR_DETAIL', 'Connecting to the backend failed')
    message.set('default', 'CUSTOM_HTTP_SC', 502)
    message.set('default', 'FAULT_MESSAGE_TYPE', format)
    sequences.run('fault', message)
    if (formatResponse(message, report).status !== 502) throw new Error('wrong status')
  })
}
