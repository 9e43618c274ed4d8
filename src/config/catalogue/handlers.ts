/** Handlers that see every message, and the one setting about errors of AI APIs. */
import { inert, live, repeatedSection, required, section } from '../key.ts'
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
    custom_error_response_sequence: live(
      text(
        '',
        'Name of the sequence that words the errors of AI APIs, such as `_ai_error_response_`, which answers `error` ' +
          'with code, type and message; empty: they are worded as those of other APIs.',
      ),
    ),
  },
  {
    roles: ['gateway-worker', 'api-publisher', 'api-devportal'],
    readBy: ['primary/planning.ts', 'primary/preparation.ts'],
  },
)
