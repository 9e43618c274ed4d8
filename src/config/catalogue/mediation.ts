/** `[mediation]`: the background pool of workers, time-outs, formats; some keys are not acted on. */
import { either, isOneOf, isSet, isTrue } from '../conditions.ts'
import { actsIf, withSpecialValue, inert, live, type Rule, section, type Values } from '../key.ts'
import { integer, duration, flag, text } from '../kinds.ts'
import { mustNotExceed, needsBoundedQueue } from './shared-rules.ts'
import { DAY_MS } from './passthru-keys.ts'
import { isPattern } from '../../runtime/pattern.ts'

const STREAMING = 'XPath is always evaluated on a DOM'
/** Without statistics the other keys about them do nothing. */
const COUNTED = isTrue('.flow.statistics.enable')
const AUTO_PRIMITIVE = isTrue('.synapse.enable_auto_primitive')
const HANDLED = isSet('enabled_global_handlers')
const DEBUGGER = 'not built yet: the mediation debugger'
const INBOUND = 'not built yet: inbound endpoints'

const THREADS_MAX = 100_000

function threads(defaultValue: number, meaning: string) {
  return integer(defaultValue, 'threads', 1, THREADS_MAX, meaning)
}

/** Limits of bodies that a sequence reads. */
const bodyLimits = {
  'body.max_bytes': live(integer(67_108_864, 'bytes', 1, 1_073_741_824, 'Longest body that a sequence may read.')),
  'body.memory_bytes': live(
    integer(1_048_576, 'bytes', 0, 67_108_864, 'Longest such body in memory; a longer one goes to a temporary file.'),
  ),
  'body.max_depth': live(integer(200, '', 1, 1000, 'Nested elements, objects and arrays.')),
  'body.max_items': live(
    integer(500_000, '', 1, 10_000_000, 'Elements and attributes of XML, members and items of JSON, fields of forms.'),
  ),
  'body.max_name_length': live(integer(1024, 'characters', 1, 65_536, 'Length of a name, and of a JSON number.')),
  'body.max_text_length': live(integer(33_554_432, 'characters', 1, 268_435_456, 'Length of one text or value.')),
  'body.max_decoded_size': live(
    integer(67_108_864, 'bytes', 1, 268_435_456, 'Length of the body without content coding.'),
  ),
  'body.max_coding_ratio': live(
    integer(250, '', 1, 100_000, 'Decoded bytes for each coded byte, beyond the first MiB.'),
  ),
}

const keys = {
  'synapse.core_threads': live(
    integer(
      20,
      'messages',
      1,
      THREADS_MAX,
      'Messages without a waiting client, and jobs of mounted APIs beside requests, that run at once.',
    ),
  ),
  'synapse.max_threads': live(
    integer(100, 'messages', 1, THREADS_MAX, 'Such messages mediated at once when a bounded queue is full.'),
  ),
  'synapse.threads_queue_length': live(
    withSpecialValue(-1, 'unbounded', integer(10, 'messages', 0, 10_000_000, 'Such messages that wait.')),
  ),
  'synapse.global_timeout_interval': live(
    withSpecialValue(
      0,
      'off',
      duration(
        120_000,
        'ms',
        1,
        DAY_MS,
        'Response timeout of backends whose endpoint has no timeout of its own, and longest flow on a worker.',
      ),
    ),
  ),
  'synapse.enable_xpath_dom_failover': inert(flag(true, 'Evaluate XPath on a DOM after streaming fails.'), STREAMING),
  'synapse.temp_data_chunk_size': live(
    integer(3072, 'bytes', 1, 16_777_216, 'Piece in which a body in a file is written and read.'),
  ),
  'synapse.script_mediator_pool_size': live(
    integer(15, 'scripts', 1, 10_000, 'Scripts that run at once, each on its thread; one per worker thread at least.'),
  ),
  'synapse.script_mediator_timeout': live(duration(5000, 'ms', 1, DAY_MS, 'Longest time of one script.')),
  'synapse.script_mediator_heap_bytes': live(
    integer(67_108_864, 'bytes', 16_777_216, 4_294_967_296, 'Memory of one script.'),
  ),
  'handlers.pool_size': actsIf(
    HANDLED,
    integer(4, 'threads', 1, 1000, 'Threads of each reactor for handlers that are not declared synchronous.'),
  ),
  'handlers.timeout': actsIf(HANDLED, duration(5000, 'ms', 1, DAY_MS, 'Longest time of one phase on such a thread.')),
  // Below the silence after which a reactor is replaced.
  'handlers.synchronous_timeout': actsIf(
    either(HANDLED, isOneOf('apim.key_manager.key_validation_handler_type', 'custom')),
    duration(
      500,
      'ms',
      1,
      4000,
      'Longest time of a phase or timer of a synchronous handler, or of a call of the key validation handler.',
    ),
  ),
  'handlers.heap_bytes': actsIf(
    HANDLED,
    integer(67_108_864, 'bytes', 16_777_216, 4_294_967_296, 'Heap of one such thread.'),
  ),
  'synapse.preserve_namespace_on_xml_to_json': live(flag(false, 'Keep the prefixes of XML names in JSON: `p_name`.')),
  'flow.statistics.enable': flag(false, 'Count runs, faults and time of sequences, and log them.'),
  'flow.statistics.capture_all': actsIf(COUNTED, flag(false, 'Count mediators too.')),
  'statistics.enable_clean': actsIf(COUNTED, flag(true, 'Count from zero again after each report.')),
  'stat.tracer.collect_payloads': flag(
    false,
    'Show in `sluice walk` the payloads that flows on workers get and leave.',
  ),
  'stat.tracer.collect_mediation_properties': flag(false, 'Show in `sluice walk` the properties that flows leave.'),
  'synapse.command_debugger_port': inert(integer(9005, '', 1, 65_535, 'Port for commands.'), DEBUGGER),
  'synapse.event_debugger_port': inert(integer(9006, '', 1, 65_535, 'Port for events.'), DEBUGGER),
  'synapse.enable_xml_nil': live(
    flag(false, 'Write JSON null as `xsi:nil`, `xsi:nil` as null, and an empty element as an empty text.'),
  ),
  'synapse.disable_auto_primitive_regex': actsIf(
    AUTO_PRIMITIVE,
    live(text('', 'Regular expression of whole XML texts that do not become numbers in JSON; empty: none.')),
  ),
  'synapse.disable_custom_replace_regex': actsIf(
    AUTO_PRIMITIVE,
    live(
      text('', 'Regular expression of how XML texts begin that stay texts in JSON, without this part; empty: none.'),
    ),
  ),
  'synapse.enable_namespace_declaration': live(flag(false, 'Write namespace declarations in JSON: `@xmlns_p`.')),
  'synapse.build_valid_nc_name': live(
    flag(false, 'Write characters that XML names exclude as codes, and restore them; without it, they become `_`.'),
  ),
  'synapse.enable_auto_primitive': live(
    flag(true, 'Write texts of XML elements that read as a number, boolean or null as such in JSON.'),
  ),
  'synapse.json_out_auto_array': live(
    flag(true, 'Write repeated XML elements as a JSON array; without it, as members of one name.'),
  ),
  'statistics.clean_interval': actsIf(
    COUNTED,
    duration(1000, 'ms', 1, DAY_MS, 'From the first count of a reactor and its workers to their report.'),
  ),
  ...bodyLimits,
  'inbound.core_threads': inert(threads(20, 'Threads of inbound endpoints.'), INBOUND),
  'inbound.max_threads': inert(threads(100, 'Threads of inbound endpoints when the queue is full.'), INBOUND),
}

/** In RE2 syntax. */
function mustBePattern(
  key: 'synapse.disable_auto_primitive_regex' | 'synapse.disable_custom_replace_regex',
): Rule<Values<typeof keys>> {
  return {
    keys: [key],
    must: `${key} must be a regular expression, in RE2 syntax`,
    severity: 'error',
    // Without a pattern its library is not loaded: 8 MB and 5 ms.
    holds: it => it[key] === '' || isPattern(it[key]),
  }
}

export const mediation = section('mediation', 'Mediation of messages.', keys, {
  rules: [
    mustBePattern('synapse.disable_auto_primitive_regex'),
    mustBePattern('synapse.disable_custom_replace_regex'),
    mustNotExceed('synapse.core_threads', 'synapse.max_threads'),
    mustNotExceed('inbound.core_threads', 'inbound.max_threads'),
    needsBoundedQueue('synapse.max_threads', 'synapse.core_threads', 'synapse.threads_queue_length'),
  ],
  roles: ['gateway-worker'],
})
