"""The pages with clients that hold back."""

from pages import page_runs

page_runs("litellm", "litellm.md")
page_runs("langchain-cohere", "langchain.md")
