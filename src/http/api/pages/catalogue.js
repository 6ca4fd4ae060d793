// A catalogue of 1,000 invented titles with five readers, so that a server without collections has one to ask.
// Each shelf has ten subjects and ten forms of title, all of which fit all. How it is asked is not known here.

const SHELVES = {
  garden: [
    "tomatoes|roses|herbs|apple trees|strawberries|wild flowers|potatoes|bees|orchids|compost",
    "* for beginners|A year with *|* in small gardens|The little book of *|Growing trouble: pests, frost and *|" +
      "* on the balcony|Everything my grandmother knew about *|The gardener's guide to *|Plant, water, wait: *|A natural history of *",
  ],
  kitchen: [
    "bread|soup|noodles|cheese|curry|cakes|pickles|fish|coffee|chocolate",
    "* in thirty minutes|The art of *|A hundred ways with *|* without recipes|From Naples to Tokyo: a journey through *|" +
      "The science of *|Weeknight *|* for two|Slow *|The story of *",
  ],
  sea: [
    "whales|sailing ships|lighthouses|pirates|the Arctic|coral reefs|storms|submarines|harbours|sharks",
    "A history of *|Alone among *|The last days of *|Letters about *|A sailor's fear of *|In search of *|" +
      "The captain's book of *|Below the waves: *|* by night|An atlas of *",
  ],
  space: [
    "Mars|black holes|comets|the Moon|the stars|rockets|telescopes|astronauts|the Sun|other planets",
    "A short history of *|The physics of *|Journey to *|* explained|What we do not know about *|The race for *|" +
      "Looking up: a year with *|* for curious people|Voices from *|The end of *",
  ],
  history: [
    "Rome|the Vikings|the Silk Road|ancient Egypt|the Ottoman court|the Black Death|the railways|the Inca|the printing press|the Cold War",
    "The rise and fall of *|Daily life in the time of *|Women in the age of *|A people's history of *|* in fifty objects|" +
      "The secret archives of *|War and peace around *|Merchants and thieves: *|The long shadow of *|Before *",
  ],
  crime: [
    "the vicar|a violinist|the lodger|the banker|an actress|the gardener|the twin|a chess player|the surgeon|the night porter",
    "The murder of *|Who killed *?|Inspector Marlow and the case of *|The silence of *|A funeral for *|The disappearance of *|" +
      "Poison for *|The confession of *|The widow and *|Blood on the hands of *",
  ],
  fantasy: [
    "dragons|the elves|a wizard's apprentice|the ring|the witch queen|ravens|the thirteenth gate|giants|the sword|the unicorn",
    "The song of *|A throne for *|The return of *|Heirs of *|The curse of *|The war against *|Child of *|" +
      "Tales of *|The prophecy of *|* and the dark forest",
  ],
  travel: [
    "Patagonia|Iceland|Japan|the Sahara|Scotland|Vietnam|the Alps|Morocco|Siberia|the Amazon",
    "Across * on foot|A winter in *|By train through *|* with children|A cyclist in *|Lost in *|The roads of *|" +
      "Notes from *|The food and people of *|Maps of *",
  ],
  mind: [
    "memory|sleep|fear|happiness|attention|grief|habits|dreams|language|loneliness",
    "Why we need *|The psychology of *|How to live with *|* and the brain|The new science of *|A user's guide to *|" +
      "Children and *|The myth of *|Rethinking *|The power of *",
  ],
  computers: [
    "databases|passwords|Python|search engines|robots|the internet|compilers|video games|spreadsheets|machine learning",
    "* from scratch|The pragmatic guide to *|* for everyone|The people behind *|Inside *|Mastering *|" +
      "A cartoon introduction to *|* in practice|The hidden cost of *|Patterns of *",
  ],
};

/** Readers with titles that they like. */
const READERS = {
  "Ada, who gardens": ["Tomatoes for beginners", "A natural history of bees", "Herbs on the balcony"],
  "Bela, at sea": ["In search of whales", "The captain's book of storms", "Alone among lighthouses"],
  "Chidi, up at night": ["Looking up: a year with comets", "The physics of black holes", "The new science of sleep"],
  "Dora, with a knife in the library": ["Who killed a violinist?", "Poison for the banker", "The prophecy of ravens"],
  "Emil, who cooks abroad": ["The food and people of Vietnam", "From Naples to Tokyo: a journey through noodles", "Bread without recipes"],
};

export const NAME = "titles";

/** The items of the catalogue, each with its shelf. */
export function itemsOf() {
  const items = Object.entries(SHELVES).flatMap(([shelf, [subjects, forms]]) =>
    forms.split("|").flatMap((form) => subjects.split("|").map((subject) => ({ text: titled(form, subject), shelf }))),
  );
  return items.map(({ text, shelf }, place) => ({ id: `t${place + 1}`, text, attributes: { shelf } }));
}

function titled(form, subject) {
  const text = form.replace("*", subject);
  return text[0].toUpperCase() + text.slice(1);
}

/** The readers with the ids of the titles that they like. */
export function readersOf() {
  const ids = new Map(itemsOf().map(({ id, text }) => [text, id]));
  return Object.entries(READERS).map(([name, titles]) => ({ name, liked: titles.map((title) => ids.get(title)) }));
}
