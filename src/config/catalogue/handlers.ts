/** Handlers that see every message, and the one setting about errors of AI APIs. */
import { inert, repeatedSection, required, section } from '../key.ts'
import { flag, text, words } from '../kinds.ts'

const HANDLERS = 'not built yet: handlers of operators come with mediation'

/** Keys that stand above the first table of the file. */
export const topLevel = section(
  '',
  'Keys above the first table of the file.',
  {
    enabled_global_handlers: inert(
      words([], 'Names of the handlers that every message goes through, in this order.'),
      HANDLERS,
    ),
  },
  { roles: ['gateway-worker'] },
)

export const synapseHandlers = repeatedSection(
  'synapse_handlers',
  'A handler that messages can be sent through.',
  {
    name: inert(required(text('', 'Name of the handler, for `enabled_global_handlers`.')), HANDLERS),
    class: inert(required(text('', 'Class of the handler.')), HANDLERS),
    enabled: inert(flag(true, 'Send messages through it where `enabled_global_handlers` names it.'), HANDLERS),
  },
  { roles: ['gateway-worker'], otherForm: 'named' },
)

export const ai = section(
  'apim.ai',
  'APIs of language models.',
  {
    custom_error_response_sequence: inert(
      text('', 'Sequence that words the errors of AI APIs; empty: `error` with code, type and message.'),
      'not built yet: AI APIs and error formats come with the sequences',
    ),
  },
  { roles: ['gateway-worker', 'api-publisher', 'api-devportal'] },
)
