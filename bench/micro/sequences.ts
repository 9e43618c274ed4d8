/** What it costs to word an answer: default sequences from a filled message to status, fields and body. */
import { readFileSync } from 'node:fs'
import { Findings } from '../../src/config/findings.ts'
import { formatAnswer } from '../../src/mediation/formatter.ts'
import { Message } from '../../src/mediation/message.ts'
import { readSequence } from '../../src/mediation/read-sequence.ts'
import { Sequences } from '../../src/mediation/sequences.ts'
import { time } from './stopwatch.ts'

const FOLDER = new URL('../../conf/synapse-configs/default/sequences/', import.meta.url)
const NAMES = ['fault', '_cors_request_handler_']
const FORMATS = ['application/json', 'application/xml', 'text/xml']

const findings = new Findings()
const read = NAMES.map(name => readSequence(name, name, readFileSync(new URL(`${name}.xml`, FOLDER), 'utf8'), findings))
const programs = (await Promise.all(read)).filter(program => program !== undefined)
const report = (_: string, event: string) => {
  throw new Error(event)
}
const sequences = new Sequences(programs, report)

for (const format of FORMATS) {
  time(`sequences: fault as ${format}`, () => {
    const message = new Message(() => undefined)
    message.set('default', 'ERROR_CODE', 101503)
    message.set('default', 'ERROR_MESSAGE', 'Error connecting to the back end')
    message.set('default', 'ERROR_DETAIL', 'Connecting to the back end failed')
    message.set('default', 'CUSTOM_HTTP_SC', 502)
    message.set('default', 'FAULT_MESSAGE_TYPE', format)
    sequences.run('fault', message)
    if (formatAnswer(message, report).status !== 502) throw new Error('not the answer')
  })
}
