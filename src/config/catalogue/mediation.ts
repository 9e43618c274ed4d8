/** `[mediation]`: one key is about transport and acts; the others are not acted on. */
import { withSpecialValue, inert, live, section } from '../key.ts'
import { integer, duration, flag, text } from '../kinds.ts'
import { mustNotExceed, needsBoundedQueue } from './shared-rules.ts'
import { DAY_MS } from './passthru-keys.ts'

const MEDIATION = 'not built yet: mediation'
const CONVERSION = 'not built yet: conversion between XML and JSON'
const STATISTICS = 'not built yet: statistics of mediation flows'
const DEBUGGER = 'not built yet: the mediation debugger'
const INBOUND = 'not built yet: inbound endpoints'

const THREADS_MAX = 100_000

function threads(defaultValue: number, meaning: string) {
  return integer(defaultValue, 'threads', 1, THREADS_MAX, meaning)
}

const keys = {
  'synapse.core_threads': inert(threads(20, 'Mediation threads.'), MEDIATION),
  'synapse.max_threads': inert(threads(100, 'Mediation threads when the queue is full.'), MEDIATION),
  'synapse.threads_queue_length': inert(
    withSpecialValue(-1, 'unbounded', integer(10, 'messages', 0, 10_000_000, 'Messages that wait for a thread.')),
    MEDIATION,
  ),
  'synapse.global_timeout_interval': live(
    withSpecialValue(
      0,
      'off',
      duration(120_000, 'ms', 1, DAY_MS, 'Response timeout of backends whose endpoint has no timeout of its own.'),
    ),
  ),
  'synapse.enable_xpath_dom_failover': inert(flag(true, 'Evaluate XPath on a DOM after streaming fails.'), MEDIATION),
  'synapse.temp_data_chunk_size': inert(
    integer(3072, 'bytes', 1, 16_777_216, 'Chunk size of buffered messages.'),
    MEDIATION,
  ),
  'synapse.script_mediator_pool_size': inert(
    integer(15, 'engines', 1, 10_000, 'Script engines kept for each script mediator.'),
    MEDIATION,
  ),
  'synapse.preserve_namespace_on_xml_to_json': inert(flag(false, 'Keep namespaces in JSON.'), CONVERSION),
  'flow.statistics.enable': inert(flag(false, 'Collect statistics of mediation flows.'), STATISTICS),
  'flow.statistics.capture_all': inert(flag(false, 'Collect statistics of every artefact.'), STATISTICS),
  'statistics.enable_clean': inert(flag(true, 'Drop statistics after each interval.'), STATISTICS),
  'stat.tracer.collect_payloads': inert(flag(false, 'Keep payloads of traced messages.'), STATISTICS),
  'stat.tracer.collect_mediation_properties': inert(flag(false, 'Keep properties of traced messages.'), STATISTICS),
  'synapse.command_debugger_port': inert(integer(9005, '', 1, 65_535, 'Port for commands.'), DEBUGGER),
  'synapse.event_debugger_port': inert(integer(9006, '', 1, 65_535, 'Port for events.'), DEBUGGER),
  'synapse.enable_xml_nil': inert(flag(false, 'Write JSON null as an XML nil.'), CONVERSION),
  'synapse.disable_auto_primitive_regex': inert(text('', 'Pattern of XML texts that stay texts in JSON.'), CONVERSION),
  'synapse.disable_custom_replace_regex': inert(
    text('', 'Pattern of parts that are removed from such texts.'),
    CONVERSION,
  ),
  'synapse.enable_namespace_declaration': inert(flag(false, 'Write namespace declarations in JSON.'), CONVERSION),
  'synapse.build_valid_nc_name': inert(flag(false, 'Escape JSON names that are not XML names.'), CONVERSION),
  'synapse.enable_auto_primitive': inert(flag(false, 'Write numeric XML texts as JSON numbers.'), CONVERSION),
  'synapse.json_out_auto_array': inert(flag(false, 'Write repeated XML elements as a JSON array.'), CONVERSION),
  'statistics.clean_interval': inert(
    duration(1000, 'ms', 1, DAY_MS, 'Interval at which statistics are dropped.'),
    STATISTICS,
  ),
  'inbound.core_threads': inert(threads(20, 'Threads of inbound endpoints.'), INBOUND),
  'inbound.max_threads': inert(threads(100, 'Threads of inbound endpoints when the queue is full.'), INBOUND),
}

export const mediation = section('mediation', 'Mediation of messages.', keys, {
  rules: [
    mustNotExceed('synapse.core_threads', 'synapse.max_threads'),
    mustNotExceed('inbound.core_threads', 'inbound.max_threads'),
    needsBoundedQueue('synapse.max_threads', 'synapse.core_threads', 'synapse.threads_queue_length'),
  ],
  roles: ['gateway-worker'],
})
